"""Edit and delete tracks, albums and artists."""
