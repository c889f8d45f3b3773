"""The activity log: API calls and security events."""
