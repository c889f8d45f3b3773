"""Cover art and avatars, drawn with seeded random numbers."""
