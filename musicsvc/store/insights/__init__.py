"""Play, listener and engagement figures of tracks, albums and artists, and their exports."""
