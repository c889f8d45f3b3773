"""Authentication, rate limits and signed URLs."""
