"""Schemas of requests and responses; every request body and query is validated by one."""
