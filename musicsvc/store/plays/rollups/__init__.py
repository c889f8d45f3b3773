"""Counts of plays and listeners by day and by blocks of 8 and of 32 days, updated as plays are stored."""
