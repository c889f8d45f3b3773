"""Handlers of the endpoints that exist in demo mode only."""
