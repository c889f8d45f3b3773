"""Readers of imported files in all formats."""
