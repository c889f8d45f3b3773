"""Access to the API: authentication by token, and rate limits."""
