"""Assign artists to the accounts that manage them."""

from musicsvc.errors import Failure
from musicsvc.store.catalog import artists
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.engine.sql import lock_rows, run
from musicsvc.store.models import Artist, User
from musicsvc.store.plays import reattribution, subjects
from musicsvc.store.plays.subjects import ACCOUNT, ARTIST
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

# Of tracks and albums, and of those that were merged into them.
MOVE_EXTERNAL_IDS = tuple(
    f"""
    UPDATE {table} SET imported_for = ? WHERE {which} AND imported_for = ? AND external_id IS NOT NULL AND {id_} IN (
        SELECT l.{noun}_id FROM {noun}_artist l JOIN artist a ON a.id = l.artist_id WHERE a.manager_id = ?
    ) AND NOT EXISTS (SELECT 1 FROM {noun} o WHERE o.external_id = {table}.external_id AND o.imported_for = ?)
    """  # noqa: S608 - our own names
    for noun, kind in (("track", 1), ("album", 2))
    for table, id_, which in ((noun, "id", "TRUE"), ("merged", "into_id", f"kind = {kind}"))
)


def assign(artist_id: int, user: User, *, now: int, actor: Actor = "cli") -> ArtistRow:
    """Make `user` the manager of an artist, instead of the former manager. Raises NotFound."""
    lock_rows(Artist.select(Artist.id).where(Artist.id == artist_id)).first()
    artist = artists.get(artist_id)
    if artist.manager_id != user.id:
        with reattribution.rebuilding(subjects.tracks_of(ARTIST, [artist_id])):
            Artist.update(manager=user.id).where(Artist.id == artist_id).execute()
        _log_move(artists.about(artist), artist.manager_id, user.id, now=now, actor=actor)
    return artists.get(artist_id)


def assign_all(former: User, user: User, *, now: int, actor: Actor = "cli") -> int:
    """Make `user` the manager of all artists that `former` manages. Return the number of artists.

    Later imports for `user` find the moved tracks and albums by external id, unless `user` has others with these ids.
    Raises `Failure` if both are one account.
    """
    if former.id == user.id:
        raise Failure(f"Both accounts are {user.email}. Name two accounts.")
    lock_rows(Artist.select(Artist.id).where(Artist.manager == former.id).order_by(Artist.id)).execute()
    for statement in MOVE_EXTERNAL_IDS:
        run(statement, user.id, former.id, former.id, user.id)
    with reattribution.rebuilding(subjects.tracks_of(ACCOUNT, [former.id])):
        moved: int = Artist.update(manager=user.id).where(Artist.manager == former.id).execute()
    if moved:
        _log_move(f"all {quantity(moved, 'artist')}", former.id, user.id, now=now, actor=actor)
    return moved


def _log_move(about: str, former: int | None, manager: int, *, now: int, actor: Actor) -> None:
    """Log the move of artists to another manager, for both accounts. `about`: the artists."""
    source = "" if former is None else f", from account {former}"
    security_events.add("artist.assigned", account_id=manager, reason=f"{about}{source}", now=now, actor=actor)
    if former is not None:
        about = f"{about}, to account {manager}"
        security_events.add("artist.unassigned", account_id=former, reason=about, now=now, actor=actor)
