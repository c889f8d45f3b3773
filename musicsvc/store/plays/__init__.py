"""Plays: their ingestion, the rollups of plays and listeners, and the verification of rollups."""
