"""Conversations, notification choices, and devices."""
