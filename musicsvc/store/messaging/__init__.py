"""Conversations, notification settings and devices."""
