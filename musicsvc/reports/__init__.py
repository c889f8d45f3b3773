"""Data in, bytes out: what server and CLI print and draw."""
