"""`musicsvc import follows` and `musicsvc import playlists`."""
