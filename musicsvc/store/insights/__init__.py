"""Figures of tracks, albums and artists, and their exports."""
