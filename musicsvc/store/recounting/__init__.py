"""Recount figures from dumped plays (Parquet) with DuckDB, Spark or ClickHouse."""
