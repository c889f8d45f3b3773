"""Playlists, their tracks and their collaborators."""

from musicsvc.server.route import Route

ROUTES: tuple[Route, ...] = ()
