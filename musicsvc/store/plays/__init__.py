"""Store reported plays, count them by day and by blocks of 8 and of 32 days, and verify these counts."""
