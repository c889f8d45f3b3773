"""Accounts, their tokens, API access, and what they did that matters to security."""
