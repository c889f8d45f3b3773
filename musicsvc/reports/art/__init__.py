"""Cover art and avatars, drawn from random numbers with a seed."""
