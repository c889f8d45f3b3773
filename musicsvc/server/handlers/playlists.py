"""Playlists and their tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes import catalog
from musicsvc.server.shapes import playlists as shapes
from musicsvc.server.shapes.envelope import JSON, Site, ok, paginator
from musicsvc.store.catalog import tracks
from musicsvc.store.playlists import playlists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musicsvc.server.responses.large import AnswerBuilder
    from musicsvc.server.schemas.fields import Pages
    from musicsvc.server.schemas.playlists import PlaylistIn, PlaylistPut, TracksIn, TracksOut
    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.catalog.tracks import TrackRow
    from musicsvc.store.playlists.playlists import PlaylistRow


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's playlists and those shared with the caller, newest first."""
    found = playlists.listing(query.at(), actor=caller)
    return ok(pagination=paginator(found, [shapes.playlist(row, site) for row in found.rows]))


def show(subject: PlaylistRow, site: Site) -> JSON:
    """Read a playlist."""
    return ok(playlist=shapes.playlist(subject, site))


def create(body: PlaylistIn, caller: Identity, site: Site, now: int) -> JSON:
    """Create a playlist of the caller."""
    return ok(playlist=shapes.playlist(playlists.create(body.model_dump(), now=now, actor=caller), site))


def put(body: PlaylistPut, caller: Identity, site: Site, now: int) -> JSON:
    """Replace a playlist, found by `id` or else by its name; create it where the caller has none of this name."""
    values = body.model_dump(exclude={"id"})
    if body.id is not None:
        found: PlaylistRow | None = playlists.owned(body.id, actor=caller)
    else:
        found = playlists.named(body.name, actor=caller)
    made = playlists.replace(found.id, values) if found else playlists.create(values, now=now, actor=caller)
    return ok(playlist=shapes.playlist(made, site))


def replace(subject: PlaylistRow, body: PlaylistIn, site: Site) -> JSON:
    """Replace a playlist; an absent field has its default, the tracks stay."""
    return ok(playlist=shapes.playlist(playlists.replace(subject.id, body.model_dump()), site))


def delete(subject: PlaylistRow) -> JSON:
    """Delete a playlist."""
    playlists.delete(subject.id)
    return ok()


def list_tracks(subject: PlaylistRow, query: Pages, answer: AnswerBuilder) -> JSON:
    """List the tracks of a playlist in their order."""
    found = playlists.tracks_of(subject.id, query.at())
    return ok(pagination=paginator(found, answer.page(found.rows, tracks.measure, _tracks)))


def _tracks(rows: Sequence[TrackRow]) -> list[JSON]:
    return [catalog.track_full(row) for row in tracks.complete(rows)]


def add_tracks(subject: PlaylistRow, body: TracksIn, caller: Identity, site: Site, now: int) -> JSON:
    """Put tracks at the end of a playlist; one that is in it already is put there once more."""
    playlists.append(subject.id, body.ids, actor=caller.user_id, now=now)
    return ok(playlist=shapes.playlist(playlists.get(subject.id), site))


def remove_tracks(subject: PlaylistRow, body: TracksOut, site: Site) -> JSON:
    """Take tracks out of a playlist, every occurrence of each."""
    playlists.remove(subject.id, body.ids)
    return ok(playlist=shapes.playlist(playlists.get(subject.id), site))
