"""The table of endpoints: every path that the service answers."""

from musicsvc.server.routes import (
    admin,
    art,
    catalog,
    documents,
    editing,
    insights,
    listens,
    messages,
    pages,
    playlists,
    users,
)
from musicsvc.server.routes.route import Route

ROUTES: tuple[Route, ...] = (
    *users.ROUTES,
    *catalog.ROUTES,
    *playlists.ROUTES,
    *listens.ROUTES,
    *messages.ROUTES,
    *art.ROUTES,
    *insights.ROUTES,
    *documents.ROUTES,
    *pages.ROUTES,
    *editing.ROUTES,
    *admin.ROUTES,
)
DOCUMENTED = frozenset(route.path for route in ROUTES if not route.docs.undocumented)  # paths of the OpenAPI document
