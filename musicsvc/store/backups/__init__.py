"""Backups of a SQLite database: create, verify, keep and restore."""
