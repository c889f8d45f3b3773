"""Playlists, collections, and invitations to collaborate."""
