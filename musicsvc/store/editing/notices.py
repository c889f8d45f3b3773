"""Security events of managers: what others deleted, merged, split, moved, refused, or took from their artists.

An event goes to each manager, so that a person who shares a track with others learns who has changed it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from peewee import JOIN

from musicsvc.clock import DAY
from musicsvc.store.engine import own_writes
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Artist, ImportRun, SecurityEvent, Track, TrackArtist, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor, Administrator, Kind
from musicsvc.wording import quantity

# What the person who acted has done, before the reason of the event.
VERBS: Mapping[str, str] = {
    **{f"{noun}.deleted": "deleted" for noun in ("artist", "album", "track")},
    **{f"{noun}.merged": "merged" for noun in ("artist", "album", "track")},
    "artist.split": "split",
    "artist.unassigned": "moved",
    "artist.offer_refused": "refused",
    **{f"{noun}.uncredited": "removed" for noun in ("album", "track")},
}
OWN_PARTS = ("api", "page")  # events by these, without the account that acted, are of the account itself
SHOWN_FOR = 30 * DAY
MOST = 20
NAMED = 5  # artists in one event


class Notice(NamedTuple):
    """A deletion, merge, move, refusal or removed credit by somebody else.

    `account_id`: the account that acted, None for the operator. `display_name`: its name, None if it is deleted.
    """

    at: int
    kind: str
    about: str
    account_id: int | None
    display_name: str | None

    @property
    def verb(self) -> str:
        return VERBS[self.kind]


def log(kind: Kind, about: str, managers: Collection[int], *, account: int | None, now: int, actor: Actor) -> None:
    """Log a deletion or merge, for the account that acted and for each manager of what is concerned.

    `account`: the account that acted, None for the operator. An administrator acts for the managers.
    """
    own = () if account is None or isinstance(actor, Administrator) else (account,)
    for each in sorted({*managers, *own}) or [None]:
        _add(kind, about, each, account=account, now=now, actor=actor)


def log_uncredited(
    noun: str, about: str, artists: Collection[int], *, account: int | None, now: int, actor: Actor
) -> None:
    """Log that artists are no longer credited on an album or track, for each of their managers who did not do it."""
    lost: dict[int, list[str]] = {}
    for name, manager in _managed(artists) if artists else ():
        if manager not in {None, account}:
            lost.setdefault(manager, []).append(name)
    kind: Kind = "album.uncredited" if noun == "album" else "track.uncredited"
    for manager, names in sorted(lost.items()):
        more = f" and {quantity(len(names) - NAMED, 'more artist')}" if len(names) > NAMED else ""
        what = f"{', '.join(names[:NAMED])}{more} from {about}"
        _add(kind, what, manager, account=account, now=now, actor=actor)


def log_undone(tracks: Collection[int], import_id: int, *, now: int, actor: Actor) -> None:
    """Log that the undo of an import deletes tracks, for each of their managers but the account of the import."""
    gone: dict[int, list[tuple[int, str]]] = {}
    account: int | None = ImportRun.select(ImportRun.user).where(ImportRun.id == import_id).scalar()
    for manager, number, name in _shared(tracks):
        if manager != account:
            gone.setdefault(manager, []).append((number, name))
    for manager, ((number, name), *others) in gone.items():
        more = f" and {quantity(len(others), 'more track')}" if others else ""
        about = f"track {number} ({name}){more} (undo of import {import_id})"
        by = account if actor == "page" else None  # on pages, the account itself undoes the import
        _add("track.deleted", about, manager, account=by, now=now, actor=actor)


@compiled
def _managed(artists: Collection[int]) -> Any:
    return Artist.select(Artist.name, Artist.manager).where(Artist.id.in_(artists)).order_by(Artist.id)


@compiled
def _shared(tracks: Collection[int]) -> Any:
    """Return a query for each manager of these tracks, with the tracks."""
    query = Artist.select(Artist.manager, Track.id, Track.name).distinct().join(TrackArtist).join(Track)
    managed = query.where(Track.id.in_(tracks), Artist.manager.is_null(is_null=False))
    return managed.order_by(Artist.manager, Track.id)


def _add(kind: Kind, about: str, concerned: int | None, *, account: int | None, now: int, actor: Actor) -> None:
    by = None if account == concerned else account
    if concerned is not None and concerned != account:
        own_writes.mark_loser(concerned)
    security_events.add(kind, account_id=concerned, reason=about, now=now, actor=actor, actor_id=by)


def latest(account_id: int, *, now: int) -> Sequence[Notice]:
    """Return what others have deleted, merged or removed from the account in the last 30 days, newest first."""
    event = SecurityEvent
    by_others = event.actor_id.is_null(is_null=False) & (event.actor_id != account_id)
    by_operator = event.actor_id.is_null() & event.actor.not_in(OWN_PARTS)
    query = (
        event.select(event.at, event.kind, event.reason, event.actor_id, User.display_name)
        .join(User, JOIN.LEFT_OUTER, on=(User.id == event.actor_id))
        .where(event.account_id == account_id, event.at >= now - SHOWN_FOR, event.kind.in_([*VERBS]))
        .where(by_others | by_operator)
        .order_by(event.at.desc(), event.id.desc())
        .limit(MOST)
    )
    return tuple(Notice._make(row) for row in query.tuples().iterator())
