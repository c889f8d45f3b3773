"""Handlers of the pages of administration."""
