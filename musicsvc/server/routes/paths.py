"""Where the paths of the table begin."""

V1 = "/api/v1"
INSIGHTS = f"{V1}/producer-intelligence/insights"
