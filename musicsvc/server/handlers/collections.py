"""Collections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes import messaging as shapes
from musicsvc.server.shapes.envelope import JSON, Site, ok, paginator
from musicsvc.store import collections

if TYPE_CHECKING:
    from musicsvc.server.schemas.collections import CollectionIn
    from musicsvc.server.schemas.fields import Pages
    from musicsvc.store.collections import CollectionRow
    from musicsvc.store.tokens import Identity


def create(body: CollectionIn, caller: Identity, site: Site, now: int) -> JSON:
    """Create a collection of tracks."""
    made = collections.create(body.name, body.description, body.track_ids or (), now=now, by=caller)
    return ok(collection=shapes.collection(made, site))


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's collections, newest first, without their tracks."""
    found = collections.listing(query.at(), by=caller)
    return ok(pagination=paginator(found, [shapes.collection_listed(row, site) for row in found.rows]))


def show(subject: CollectionRow, site: Site) -> JSON:
    """Read one of the caller's collections."""
    return ok(collection=shapes.collection(subject, site))
