"""List, read and create albums."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.catalog import AlbumEdit, AlbumIn, AlbumPages, AlbumParts
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, ok, paginator
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import albums, fields
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.editing import creations, deletions, edits


def index(query: AlbumPages, caller: Identity | None, answer: AnswerBuilder) -> JSON:
    """List all albums, newest first."""
    found = albums.list_all(query.to_page())
    if caller is None:
        return ok(albums=paginator(found, [shapes.album_public(row) for row in found.rows]))
    return ok(albums=paginator(found, answer.page(found, shapes.album_full, albums.with_contents)))


def show(subject: AlbumRow, query: AlbumParts, caller: Identity | None) -> JSON:
    """Read an album, with its genres and tags if `with` names them."""
    if caller is None:
        return ok(album=shapes.album_public(subject))
    album = albums.with_labels(albums.with_contents([subject])[0], query.with_)
    return ok(album=shapes.album_full(album, query.with_))


def create(body: AlbumIn, caller: Identity, now: int) -> JSON:
    """Create an album of an artist that the caller manages."""
    album = creations.create_album(body.model_dump(exclude_none=True), now=now, actor=caller)
    return ok(album=shapes.album_full(album))


def edit(subject: AlbumRow, body: AlbumEdit, caller: Identity, now: int) -> JSON:
    """Change an album; only the fields that are sent change."""
    changes = fields.changes("album", body.model_dump(exclude_unset=True))
    album = edits.edit_album(subject, changes, now=now, caller=caller, actor="api")
    return ok(album=shapes.album_full(album))


def delete(subject: AlbumRow, caller: Identity, now: int) -> JSON:
    """Delete an album; its tracks stay."""
    deletions.delete(subject, now=now, account=caller.user_id, actor="api")
    return ok()
