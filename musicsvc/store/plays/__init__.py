"""Store the plays of tracks that API clients report, count them by day, week and month, and verify these counts."""
