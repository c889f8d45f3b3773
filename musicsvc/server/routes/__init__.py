"""THE table of endpoints, by subject: what is not in it does not exist."""

from musicsvc.server.route import Route
from musicsvc.server.routes import art, catalog, exports, insights, messaging, people, playlists, plays, service
from musicsvc.server.routes.paths import INSIGHTS, V1

__all__ = ["INSIGHTS", "ROUTES", "V1"]

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
