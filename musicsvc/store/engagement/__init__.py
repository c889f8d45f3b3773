"""Comments, likes and reposts, and the likes and reposts of each day."""
