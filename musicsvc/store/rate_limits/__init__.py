"""Rate limits: the sliding-window rule, counters in memory, SQLite and PostgreSQL, what is counted in advance."""
