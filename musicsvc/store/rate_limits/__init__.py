"""Rate limits: the sliding-window rule, and request counters in memory, in SQLite and in PostgreSQL."""
