"""Prefixes of the paths in the table of endpoints."""

V1 = "/api/v1"
INSIGHTS = f"{V1}/producer-intelligence/insights"
