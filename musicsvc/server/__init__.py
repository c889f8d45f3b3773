"""The HTTP side: one table of endpoints, and what makes it answer."""
