"""Recount figures from single plays: of this database, or dumped (Parquet) with DuckDB, Spark or ClickHouse."""
