"""Accounts, their tokens, API access, follows and security events."""
