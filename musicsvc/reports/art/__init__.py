"""Draw cover art and avatars with seeded random numbers, so that the same input gives the same picture."""
