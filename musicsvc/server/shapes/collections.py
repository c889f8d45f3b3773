"""Build the JSON of collections, the private, named lists of tracks of an account."""

from collections.abc import Sequence

from musicsvc.clock import isoformat
from musicsvc.server.shapes import users
from musicsvc.server.shapes.envelope import JSON, Members, Site
from musicsvc.store.playlists.collections import CollectionRow


def full(row: CollectionRow, tracks: Sequence[JSON] | Members, site: Site) -> JSON:
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "tracks_count": row.tracks_count,
        "tracks": tracks,
        "user": users.summary(*row.user, site),
        "created_at": isoformat(row.created_at),
    }


def listed(row: CollectionRow, site: Site) -> JSON:
    shape = full(row, (), site)
    del shape["tracks"]
    return shape
