"""SQLite through apsw."""
