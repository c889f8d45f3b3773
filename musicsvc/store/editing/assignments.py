"""Assign artists to the accounts that manage them."""

from collections.abc import Collection, Sequence
from typing import Any

from peewee import fn

from musicsvc.errors import Failure
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog import artists
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.engine import own_writes
from musicsvc.store.engine.sql import lock_row, lock_rows
from musicsvc.store.models import Album, AlbumArtist, Artist, Merged, Track, TrackArtist, User
from musicsvc.store.plays import reattribution, subjects
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity


def assign(artist_id: int, user: User, *, now: int, actor: Actor = "cli") -> ArtistRow:
    """Make `user` the manager of an artist, instead of the former manager. Raises NotFound."""
    artist = lock(artist_id)
    if artist.manager_id != user.id:
        with reattribution.rebuilding(subjects.tracks_of(ARTIST, [artist_id])):
            Artist.update(manager=user.id).where(Artist.id == artist_id).execute()
        _log_move(artists.about(artist), artist.manager_id, user.id, now=now, actor=actor)
    return artists.get(artist_id)


def lock(artist_id: int) -> ArtistRow:
    """Return an artist, whose manager stays the same until the transaction ends. Raises NotFound."""
    lock_row(Artist, artist_id)
    return artists.get(artist_id)


def require_two(former: User, user: User) -> None:
    """Raise Failure if both are one account."""
    if former.id == user.id:
        raise Failure(f"Both accounts are {user.email}. Name two accounts.")


def assign_all(
    former: User,
    user: User,
    *,
    only: Collection[int] | None = None,
    now: int,
    actor: Actor = "cli",
    account: int | None = None,
) -> int:
    """Make `user` the manager of all artists that `former` manages, or `only` of these. Return the number of artists.

    Later imports for `user` find the tracks and albums by external id if all artists moved, unless `user` has others
    with these ids. `account`: the account that acts, if it is one of both. Raises `Failure` if both are one account.
    """
    require_two(former, user)
    chosen = managed_by(former.id) if only is None else managed_by(former.id) & Artist.id.in_(only)
    rows = lock_rows(Artist.select(Artist.id, Artist.name).where(chosen).order_by(Artist.id)).tuples()
    moved = [(number, name) for number, name in rows.iterator()]
    if only is None:
        _move_external_ids(TRACK, Track, TrackArtist.track, former.id, user.id)
        _move_external_ids(ALBUM, Album, AlbumArtist.album, former.id, user.id)
    with reattribution.rebuilding(subjects.tracks_of(ARTIST, [number for number, _ in moved]) if moved else ()):
        Artist.update(manager=user.id).where(chosen).execute()
    if moved:
        about = f"all {quantity(len(moved), 'artist')}" if only is None else _names(moved)
        _log_move(about, former.id, user.id, now=now, actor=actor, account=account)
    return len(moved)


def _names(moved: Sequence[tuple[int, str]]) -> str:
    (number, name), *others = moved
    return f"artist {number} ({name})" + (f" and {quantity(len(others), 'other')}" if others else "")


def _move_external_ids(kind: int, table: Any, credited: Any, former: int, user: int) -> None:
    """Let imports for `user` find tracks or albums, and what was merged into them, unless others have these ids."""
    managed = credited.model.select(credited).join(Artist).where(managed_by(former))
    other = table.alias()
    for model, row_id, of_kind in ((table, table.id, True), (Merged, Merged.into, Merged.kind == kind)):
        taken = other.select(other.id).where(other.external_id == model.external_id, other.imported_for == user)
        imported = (model.imported_for == former) & model.external_id.is_null(is_null=False)
        chosen = imported & row_id.in_(managed) & ~fn.EXISTS(taken) & of_kind
        model.update(imported_for=user).where(chosen).execute()


def _log_move(
    about: str, former: int | None, manager: int, *, now: int, actor: Actor, account: int | None = None
) -> None:
    """Log the move of artists to another manager, for both accounts. `about`: the artists; `account`: who acted."""
    source = "" if former is None else f", from account {former}"
    security_events.add("artist.assigned", account_id=manager, reason=f"{about}{source}", now=now, actor=actor)
    if former is not None:
        own_writes.mark_loser(former)
        about = f"{about}, to account {manager}"
        security_events.add(
            "artist.unassigned", account_id=former, reason=about, now=now, actor=actor, actor_id=account
        )
