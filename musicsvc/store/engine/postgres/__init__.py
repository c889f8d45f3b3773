"""Database access for PostgreSQL through psycopg: connections, transactions and what they change."""
