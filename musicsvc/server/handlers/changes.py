"""List the changes of the catalog."""

from musicsvc.server.schemas.changes import ChangesQuery
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.catalog import changes


def index(query: ChangesQuery) -> JSON:
    """List the artists, albums and tracks that changed since a cursor, for clients that keep a copy."""
    found = changes.since(query.since)
    return ok(changes=[shapes.change(row) for row in found.rows], cursor=found.cursor, has_more=found.has_more)
