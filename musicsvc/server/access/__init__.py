"""Who may ask, and how often: tokens, rate limits, signed URLs."""
