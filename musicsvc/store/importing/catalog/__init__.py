"""`musicsvc import catalog`."""
