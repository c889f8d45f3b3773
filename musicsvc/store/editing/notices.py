"""Security events of the managers of what was deleted, merged, or taken from their artists by somebody else.

An event goes to each manager, so that a person who shares a track with others learns who has changed it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from peewee import JOIN

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch, in_list
from musicsvc.store.models import SecurityEvent, User
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor, Administrator, Kind
from musicsvc.wording import quantity

MANAGERS = {
    ARTIST: "SELECT manager_id FROM artist WHERE id = ?",
    ALBUM: "SELECT a.manager_id FROM album_artist l JOIN artist a ON a.id = l.artist_id WHERE l.album_id = ?",
    TRACK: "SELECT a.manager_id FROM track_artist l JOIN artist a ON a.id = l.artist_id WHERE l.track_id = ?",
}
ARTISTS = "SELECT name, manager_id FROM artist WHERE id {among} ORDER BY id"
SHARED = """
    SELECT DISTINCT a.manager_id, t.id, t.name FROM track t JOIN track_artist l ON l.track_id = t.id
    JOIN artist a ON a.id = l.artist_id WHERE t.id {among} AND a.manager_id IS NOT NULL
    AND a.manager_id IS DISTINCT FROM (SELECT user_id FROM import_run WHERE id = ?) ORDER BY 1, 2
"""
# What the person who acted has done, before the reason of the event.
VERBS: Mapping[str, str] = {
    **{f"{noun}.deleted": "deleted" for noun in ("artist", "album", "track")},
    **{f"{noun}.merged": "merged" for noun in ("artist", "album", "track")},
    **{f"{noun}.uncredited": "removed" for noun in ("album", "track")},
}
OWN_PARTS = ("api", "page")  # events by these, without the account that acted, are of the account itself
SHOWN_FOR = 30 * DAY
MOST = 20
NAMED = 5  # artists in one event


class Notice(NamedTuple):
    """A deletion, merge or removed credit by somebody else.

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


def managers_of(kind: int, number: int) -> set[int]:
    """Return the accounts that manage an artist, or the artists of an album or track."""
    return {manager for (manager,) in fetch(MANAGERS[kind], number) if manager is not None}


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
    among, ids = in_list(artists)
    for name, manager in fetch(ARTISTS.format(among=among), ids) if artists else ():
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
    among, ids = in_list(tracks)
    for manager, number, name in fetch(SHARED.format(among=among), ids, import_id):
        gone.setdefault(manager, []).append((number, name))
    for manager, ((number, name), *others) in gone.items():
        more = f" and {quantity(len(others), 'more track')}" if others else ""
        about = f"track {number} ({name}){more} (undo of import {import_id})"
        ((account,),) = fetch("SELECT user_id FROM import_run WHERE id = ?", import_id)
        by = account if actor == "page" else None  # on pages, the account itself undoes the import
        _add("track.deleted", about, manager, account=by, now=now, actor=actor)


def _add(kind: Kind, about: str, concerned: int | None, *, account: int | None, now: int, actor: Actor) -> None:
    by = None if account == concerned else account
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
