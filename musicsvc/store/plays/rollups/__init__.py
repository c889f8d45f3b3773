"""Play and listener counts by day, week and month, updated in the transaction of the plays they count."""
