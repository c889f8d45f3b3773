"""The designs of cover art, one per file; random numbers are their only input."""
