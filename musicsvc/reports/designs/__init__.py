"""The designs of cover art, one per file. Each design draws its picture from random numbers."""
