"""The catalog: artists, albums, tracks, genres and tags."""
