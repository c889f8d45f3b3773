"""Response bodies: one function per resource and tier, which returns a dict in documented order."""
