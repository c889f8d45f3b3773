"""What clients get: one function per resource and tier, literal dicts in documented order."""
