"""Rate limits: the sliding-window rule, and request counters in memory, in a SQLite file and on PostgreSQL."""
