"""Handlers of pages."""
