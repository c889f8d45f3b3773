"""Database access for PostgreSQL through psycopg: connections, transactions, and detection of changes."""
