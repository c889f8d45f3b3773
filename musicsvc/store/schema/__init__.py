"""The schema of a database and its migrations."""
