"""Rate limits: the sliding window and the counters behind it."""
