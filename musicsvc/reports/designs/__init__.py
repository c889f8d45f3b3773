"""The designs of cover art, one per file, each drawn from random numbers alone."""
