"""Play and listener counts by day, week and month (rollups), updated in the transaction that stores the plays."""
