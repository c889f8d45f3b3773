"""Copy a database to an empty one, also of the other kind, and compare two databases."""
