"""Count pending listens as plays once their track exists, however it came to exist.

`advance` follows the numbered changes of the catalog (`catalog/changes.py`), and looks once at each listen that came
in, because its track may have been created while it did. Transactions that store pending listens hold the lock `LOCK`
shared, so that none with a lower number follows later.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from peewee import SQL, fn

from musicsvc.clock import DAY
from musicsvc.store.catalog import changes, merged, tracks
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import compiled
from musicsvc.store.listens import matching, refusals
from musicsvc.store.listens.matching import Listen
from musicsvc.store.models import Artist, ListenProgress, Merged, MergedCredit, PendingListen, Track, TrackArtist, User
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.reported import own_plays
from musicsvc.store.plays.rollups import blocks, listeners

LOCK = 0x4C49_5354_454E_0000  # "LISTEN"
CHANGES, LISTENS = 1000, 200  # that are looked at in one transaction
KEPT = 400 * DAY
CLEANED = 1000  # at once
MOST = 1_000_000  # pending listens of all accounts


def is_due() -> bool:
    """Return whether there are pending listens, and changes or listens that `advance` has not looked at."""
    if _named():
        return True
    ((newest,),) = _newest()
    if newest is None:
        return False
    ((position, seen),) = _progress()
    return bool(position != changes.last() or seen < newest)


def _named() -> dict[int, int]:
    """Return some listens with the negative ids of the tracks that their person named, or that an undo took back."""
    mark = PendingListen.counted_for
    some = PendingListen.select(PendingListen.id, mark).where(mark < SQL("0")).order_by(mark).limit(LISTENS)
    return dict(some.tuples().iterator())


@compiled
def _newest() -> Any:
    return PendingListen.select(fn.max(PendingListen.id)).where(PendingListen.counted_for.is_null())


@compiled
def _progress() -> Any:
    return ListenProgress.select(ListenProgress.position, ListenProgress.seen)


def advance(now: int) -> bool:
    """Look at some changes and listens. Return whether more are left. Call in a transaction."""
    sql.lock(LOCK)
    counting.share()
    if named := _named():
        _count_named(named, now)
        return True
    progress: Any = ListenProgress.select().get()
    fresh = [*_listens(progress.seen)]
    if fresh:
        count(_found(fresh), now)
        ListenProgress.update(seen=fresh[-1][0]).execute()
        return True
    changed = changes.after(progress.position, CHANGES)
    if not changed:  # the last change may be before the position: a copy of a database has other numbers
        ListenProgress.update(position=0, after=0).where(ListenProgress.position > changes.last()).execute()
        return False
    artists, codes, ids = _named_by(changed)
    some = [*_waiting(artists, codes, ids, progress.after)] if artists or codes or ids else []
    count(_found(some), now)
    if len(some) < LISTENS:
        ListenProgress.update(position=changed[-1][2], after=0).execute()
    else:
        ListenProgress.update(after=some[-1][0]).execute()
    return True


def clean(now: int) -> None:
    """Delete listens that are 400 days old and, beyond 1,000,000, the oldest of the account that has most.

    Dismissed ones go as soon as a repeat is too old to be accepted.
    """
    listen = PendingListen
    done = listen.counted_for == 0, listen.played_at < now - own_plays.OLDEST
    dismissed = listen.select(listen.id).where(*done).limit(CLEANED)
    listen.delete().where(listen.id.in_(dismissed)).execute()
    earliest = listen.select(listen.id).order_by(listen.id).limit(CLEANED)
    listen.delete().where(listen.received_at < now - KEPT, listen.id.in_(earliest)).execute()
    waiting = listen.counted_for.is_null()
    of = listen.user, fn.count(listen.id)
    first, last = listen.select(fn.min(listen.id), fn.max(listen.id)).tuples().first()
    if first is None or last - first < MOST:
        return
    counted = listen.select(*of).where(waiting).group_by(listen.user).order_by(of[1].desc())
    rows = [*counted.tuples().iterator()]
    if (surplus := sum(number for _, number in rows) - MOST) > 0:
        oldest = listen.select(listen.id).where(listen.user == rows[0][0], waiting)
        oldest = oldest.order_by(listen.id).limit(min(surplus, CLEANED))
        listen.delete().where(listen.id.in_(oldest)).execute()


def _named_by(changed: Sequence[Sequence[int]]) -> tuple[set[int], set[str], set[str]]:
    """Return hashes of the keys of the artists that changed or whose tracks did, and the ISRCs and ids of tracks."""
    tracks, artists = (_with_targets(kind, changed) for kind in (merged.TRACK, merged.ARTIST))
    names = {name for (name,) in _names(tracks, artists)} | {name for (name,) in _former_names(tracks, artists)}
    codes = [*_codes(tracks), *_former_codes(tracks)]
    return {*map(matching.artist_key, names)}, {one for one, _ in codes if one}, {one for _, one in codes if one}


def _with_targets(kind: int, changed: Sequence[Sequence[int]]) -> list[int]:
    """Return the ids of changed tracks or artists, and of those into which they were merged."""
    ids = [number for of, number, _ in changed if of == kind]
    return [*ids, *merged.targets(kind, ids).values()]


@compiled
def _names(tracks: Collection[int], artists: Collection[int]) -> Any:
    of_tracks = Artist.select(Artist.name).join(TrackArtist).where(TrackArtist.track.in_(tracks))
    return of_tracks.union(Artist.select(Artist.name).where(Artist.id.in_(artists)))


@compiled
def _former_names(tracks: Collection[int], artists: Collection[int]) -> Any:
    of_tracks: Any = Merged.select(Merged.name).join(TrackArtist, on=(TrackArtist.artist == Merged.into))
    of_tracks = of_tracks.where(Merged.kind == merged.ARTIST, TrackArtist.track.in_(tracks))
    credited = Artist.select(Artist.name).join(MergedCredit, on=(MergedCredit.artist == Artist.id)).join(Merged)
    of_tracks = of_tracks.union(credited.where(Merged.kind == merged.TRACK, Merged.into.in_(tracks)))
    return of_tracks.union(Merged.select(Merged.name).where(Merged.kind == merged.ARTIST, Merged.into.in_(artists)))


@compiled
def _codes(tracks: Collection[int]) -> Any:
    return Track.select(Track.isrc, Track.external_id).where(Track.id.in_(tracks))


@compiled
def _former_codes(tracks: Collection[int]) -> Any:
    return Merged.select(Merged.code, Merged.external_id).where(Merged.kind == merged.TRACK, Merged.into.in_(tracks))


COLUMNS = (
    PendingListen.id, PendingListen.played_at, PendingListen.artist, PendingListen.title, PendingListen.release,
    PendingListen.isrc, PendingListen.external_id, PendingListen.platform,
)  # fmt: skip


@compiled
def _listens(after: int) -> Any:
    query = PendingListen.select(*COLUMNS).where(PendingListen.id > after, PendingListen.counted_for.is_null())
    return query.order_by(PendingListen.id).limit(LISTENS)


@compiled
def _waiting(artists: Collection[int], codes: Collection[str], ids: Collection[str], after: int) -> Any:
    listen = PendingListen
    named = listen.artist_key.in_(artists) | listen.isrc.in_(codes) | listen.external_id.in_(ids)
    query = listen.select(*COLUMNS).where(named, listen.id > after, listen.counted_for.is_null())
    return query.order_by(listen.id).limit(LISTENS)


def _found(rows: Sequence[Sequence[Any]]) -> dict[int, int]:
    """Return the tracks of those pending listens that have one now, by the ids of the listens."""
    listens = [Listen(*row[1:]) for row in rows]
    tracks = matching.find(listens) if listens else []
    return {row[0]: track for row, track in zip(rows, tracks, strict=True) if track is not None}


def _count_named(named: Mapping[int, int], now: int) -> None:
    """Count listens as plays of the tracks that `_named` returns, or of others if these are gone, or let them wait."""
    gone = tracks.gone({-mark for mark in named.values()})
    found = {listen: gone.get(-mark, -mark) for listen, mark in named.items()}
    count({listen: track for listen, track in found.items() if track is not None}, now)
    listen = PendingListen
    listen.update(counted_for=None).where(listen.id.in_([*named]), listen.counted_for < 0).execute()
    left = listen.select(*COLUMNS).where(listen.id.in_([*named]), listen.counted_for.is_null())
    count(_found([*left.tuples().iterator()]), now)


def count(found: Mapping[int, int], now: int) -> None:
    """Count pending listens, by their ids, as plays of tracks. They hold their places among own plays already.

    Those of days whose plays are not kept any more are dropped, and counted as such.
    """
    if not found:
        return
    kept_from = blocks.progress().kept_from * DAY
    accounts = User.select(User.id)  # programs of 0.1.0 leave the listens of accounts that they delete
    listens = PendingListen.select().where(PendingListen.id.in_([*found]), PendingListen.user.in_(accounts))
    rows: list[Any] = [*listens.iterator()]
    own = listeners.ensure({listeners.account_key(row.user) for row in rows})
    kept = [row for row in rows if row.played_at >= kept_from]
    plays = [_play(row, found[row.id], own[listeners.account_key(row.user)]) for row in kept]
    ingest.record(plays, {*own.values()}, placed=True)
    _mark.many([(found[row.id], row.id) for row in kept])
    gone = [row for row in rows if row.played_at < kept_from]
    if gone:
        PendingListen.delete().where(PendingListen.id.in_([row.id for row in gone])).execute()
        refusals.add(Counter((row.user, "pruned") for row in gone), now)
    counting.roll_up(len(plays))


@compiled
def _mark(track: int, listen: int) -> Any:
    return PendingListen.update(counted_for=track).where(PendingListen.id == listen)


def _play(row: Any, track: int, own: int) -> PlayRow:
    by = row.user
    return PlayRow(row.slot, track, own, WITHOUT_ID, row.played_at, None, by, None, None, row.received_at, row.platform)


def skip_changes() -> None:
    """Look at no change of the catalog until now, unless listens wait. Call before the first one is stored."""
    if not PendingListen.select().where(PendingListen.counted_for.is_null()).exists():
        ListenProgress.update(position=changes.last(), after=0).execute()
