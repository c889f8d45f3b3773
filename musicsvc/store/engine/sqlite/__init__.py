"""Database access for SQLite through the apsw driver: files, file locks, group commit and reserved disk space."""
