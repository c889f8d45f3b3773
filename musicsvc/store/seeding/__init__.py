"""Fixtures and synthetic data."""
