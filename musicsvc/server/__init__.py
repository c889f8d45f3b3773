"""The HTTP server: the table of endpoints and the code that serves them."""
