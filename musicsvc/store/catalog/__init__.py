"""Artists, albums, tracks, and what belongs to them."""
