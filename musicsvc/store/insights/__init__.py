"""Statistics of tracks, albums and artists (plays, listeners, likes, reposts), and rows of their exports."""
