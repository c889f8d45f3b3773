"""Play and listener counts (rollups) by day, week and month, updated in the transaction that stores the plays."""
