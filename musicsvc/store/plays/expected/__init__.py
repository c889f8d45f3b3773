"""Recompute play counts, to compare them with the stored ones."""
