"""Rate limits: the sliding window rule, and counters in memory, in a SQLite file and on PostgreSQL."""
