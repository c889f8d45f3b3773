"""List, read and create artists, and list their albums and tracks."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.catalog import ArtistEdit, ArtistIn, ArtistPages
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, ok, paged, paginator
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import albums, artists, fields, tracks
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.editing import creations, deletions, edits


def index(query: ArtistPages, caller: Identity | None) -> JSON:
    """List all artists, or those whose names contain a text, newest first."""
    page = query.to_page()
    found = artists.list_all(page) if query.q is None else artists.find_named(query.q, page)
    shape = shapes.artist_full if caller else shapes.artist_public
    return ok(artists=paginator(found, [shape(row) for row in found.rows]))


def show(subject: ArtistRow, caller: Identity | None) -> JSON:
    """Read an artist."""
    return ok(artist=shapes.artist_full(subject) if caller else shapes.artist_public(subject))


def create(body: ArtistIn, caller: Identity, now: int) -> JSON:
    """Create an artist that the caller manages."""
    artist = creations.create_artist(body.model_dump(exclude_none=True), now=now, actor=caller)
    return ok(artist=shapes.artist_full(artist))


def edit(subject: ArtistRow, body: ArtistEdit, now: int) -> JSON:
    """Change an artist; only the fields that are sent change."""
    artist = edits.edit_artist(subject, fields.changes("artist", body.model_dump(exclude_unset=True)), now=now)
    return ok(artist=shapes.artist_full(artist))


def delete(subject: ArtistRow, caller: Identity, now: int) -> JSON:
    """Delete an artist without tracks and albums of its own."""
    deletions.delete(subject, now=now, account=caller.user_id, actor="api")
    return ok()


def list_albums(subject: ArtistRow, query: Pages, caller: Identity | None, answer: AnswerBuilder) -> JSON:
    """List an artist's albums, newest release first."""
    found = albums.list_by_artist(subject.id, query.to_page())
    if caller is None:
        return paged(found, shapes.album_public)
    return answer.paged(found, shapes.album_full, albums.with_contents)


def list_tracks(subject: ArtistRow, query: Pages, caller: Identity | None, answer: AnswerBuilder) -> JSON:
    """List an artist's tracks, most played first."""
    found = tracks.list_by_artist(subject.id, query.to_page())
    if caller is None:
        return paged(found, shapes.track_public)
    return answer.paged(found, shapes.track_full, tracks.complete)
