"""The table of endpoints: a path that is not in it does not exist."""

from musicsvc.server.routes import art, catalog, exports, insights, messaging, people, playlists, plays, service
from musicsvc.server.routes.route import Route

ROUTES: tuple[Route, ...] = (
    *people.ROUTES,
    *catalog.ROUTES,
    *playlists.ROUTES,
    *plays.ROUTES,
    *messaging.ROUTES,
    *art.ROUTES,
    *insights.ROUTES,
    *exports.ROUTES,
    *service.ROUTES,
)
