"""The server's log on stderr."""
