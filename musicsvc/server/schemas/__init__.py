"""Schemas of requests and responses; they validate every request body and query string."""
