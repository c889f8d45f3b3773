"""Indexes of names for searches, and keeping them up to date."""
