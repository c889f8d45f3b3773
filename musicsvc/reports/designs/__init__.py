"""The designs of cover art, one per file. Each draws a picture from random numbers only."""
