"""Conversations, collections, devices, notification choices."""

from musicsvc.server.route import Route

ROUTES: tuple[Route, ...] = ()
