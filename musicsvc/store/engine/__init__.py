"""Database access for SQLite and PostgreSQL: connections, transactions and SQL."""
