"""Processes of a server: workers, signals, memory."""
