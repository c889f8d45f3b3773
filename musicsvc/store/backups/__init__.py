"""Create, verify, retain and restore backups of a SQLite database."""
