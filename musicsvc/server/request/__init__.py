"""The way of a request: read, check, dispatch."""
