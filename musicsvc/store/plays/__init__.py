"""Plays: how they come in, what is counted from them, and how it is verified."""
