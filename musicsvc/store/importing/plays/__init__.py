"""`musicsvc import plays`."""
