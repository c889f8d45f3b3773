"""The engine below the store: connections, transactions and SQL on SQLite and PostgreSQL."""
