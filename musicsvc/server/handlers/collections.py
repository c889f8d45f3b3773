"""Collections are private, named lists of tracks."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.playlists import CollectionIn
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Members, Site, ok, paged, picked
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.playlists import collections
from musicsvc.store.playlists.collections import CollectionRow


def create(body: CollectionIn, caller: Identity, site: Site, now: int, answer: AnswerBuilder) -> JSON:
    """Create a collection of tracks."""
    collection = collections.create(body.name, body.description, body.track_ids or (), now=now, actor=caller)
    return show(collection, site, answer)


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's collections, newest first, without their tracks."""
    return paged(collections.list_own(query.to_page(), actor=caller), _shape, site)


def show(subject: CollectionRow, site: Site, answer: AnswerBuilder) -> JSON:
    """Read one of the caller's collections."""
    contents = answer.array(subject.track_ids, catalog.track_nested, tracks.find)
    return ok(collection=_shape(subject, site, tracks=contents))


def _shape(row: CollectionRow, site: Site, **contents: Members) -> JSON:
    about, user = picked(row, "id", "name", "description", "tracks_count"), catalog.account(row.user, site)
    return {**about, **contents, "user": user, **picked(row, "created_at")}
