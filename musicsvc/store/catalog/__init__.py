"""The catalog: artists, albums, tracks, genres, tags, comments and likes."""
