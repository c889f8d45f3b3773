"""List the genres of tracks and albums."""

from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, paged
from musicsvc.store.catalog import genres


def index(query: Pages) -> JSON:
    """List all genres by name."""
    return paged(genres.list_all(query.to_page()), shapes.genre_row)
