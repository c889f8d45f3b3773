"""Plays of tracks: storing reported plays, counting them by day, week and month, and verifying these counts."""
