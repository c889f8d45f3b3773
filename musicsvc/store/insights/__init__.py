"""Figures of tracks, albums and artists (plays, listeners, likes, reposts), and their rows in export files."""
