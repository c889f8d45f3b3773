"""Comments, likes and reposts, and the daily numbers of likes and reposts."""
