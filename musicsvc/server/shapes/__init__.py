"""Response bodies. A function per resource, with or without a token, returns a dict in the documented key order."""
