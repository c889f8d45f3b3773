"""Play and listener counts by day, week and month, updated in the transaction that stores the plays."""
