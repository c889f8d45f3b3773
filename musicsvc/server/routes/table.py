"""The table of endpoints: every path that the service answers."""

from musicsvc.server.routes import (
    admin,
    art,
    catalog,
    collections,
    documents,
    exports,
    figures_pages,
    health,
    insights,
    listening,
    messages,
    notifications,
    pages,
    playlists,
    plays,
    tokens,
    users,
)
from musicsvc.server.routes.route import Route

ROUTES: tuple[Route, ...] = (
    *users.ROUTES,
    *tokens.ROUTES,
    *catalog.ROUTES,
    *playlists.ROUTES,
    *plays.ROUTES,
    *collections.ROUTES,
    *messages.ROUTES,
    *notifications.ROUTES,
    *art.ROUTES,
    *insights.ROUTES,
    *listening.ROUTES,
    *exports.ROUTES,
    *documents.ROUTES,
    *health.ROUTES,
    *pages.ROUTES,
    *figures_pages.ROUTES,
    *admin.ROUTES,
)
