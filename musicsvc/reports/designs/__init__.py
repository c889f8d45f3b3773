"""The designs of cover art, one a file: each makes a picture of nothing but chance."""
