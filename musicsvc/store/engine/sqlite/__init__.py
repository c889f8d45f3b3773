"""The SQLite store on the apsw driver: files, locks, group commit and reserved disk space."""
