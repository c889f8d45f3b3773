"""Common prefixes of the URL paths of endpoints."""

V1 = "/api/v1"
INSIGHTS = f"{V1}/producer-intelligence/insights"
