"""List the genres of tracks and albums."""

from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, ok, paginator
from musicsvc.store.catalog import genres


def index(query: Pages) -> JSON:
    """List all genres by name."""
    found = genres.list_all(query.to_page())
    return ok(pagination=paginator(found, [shapes.genre_row(row) for row in found.rows]))
