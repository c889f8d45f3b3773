"""Request handling: bodies, dispatch to handlers, and executors for heavy work."""
