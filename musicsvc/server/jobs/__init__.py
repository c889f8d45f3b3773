"""Background work of a server."""
