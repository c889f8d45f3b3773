"""Find the stored plays that rows repeat. A row whose time is cut to the minute stands for one near it.

Such a row is the play of its track and listener that began in the minute from the row's time: the first for which no
other row of the file stands. If there is none, the row is stored with its own time, until a row of that play, with its
full time, replaces it. `matching.stored_hash` tells stored plays of such rows from others.

The primary key decides on repeats for all plays, by their tracks (`ingest.record`). What is found here is found before:
the names of a row may mean another track than when its file was imported first, or none, which would be created.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from peewee import SQL

from musicsvc.clock import MINUTE
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.plays import matching
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import SeenIds, TrackLookup
from musicsvc.store.models import DroppedPlay, Play
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups.counts import LAST_ID

BEYOND = MINUTE // SLOT  # slots before or after that of a row, in which a play of its minute may be
Name = tuple[str, int]  # "track" and an id, or "names" and a hash


class StoredPlay(NamedTuple):
    """A play that is stored, or one that a merge dropped: with 0 in place of its track."""

    track: int
    played_at: int
    names_hash: int | None
    duration_ms: int | None
    slot: int
    listener: int
    client_key: bytes
    import_id: int | None
    reporter: int


class KnownPlays:
    """The plays that earlier imports stored and that have the listener and the time of a row in the batch.

    They include those that a merge of tracks dropped. `near`: the plays for which a row may stand, or which it may
    replace (`NearPlays`).
    """

    def __init__(self, listens: Sequence[Listen], people: Mapping[str, int], run: int) -> None:
        """Load the plays. `people`: ids of listeners, `run`: the running import. Call in a transaction.

        Repeats within a file are left to the primary key, as two rows may name tracks alike. Two of its client_ids are
        two plays.
        """
        self._people = people
        self.plays: dict[tuple[int, int | None], list[StoredPlay]] = defaultdict(list)
        self.has_cut = any(listen.to_minute for listen in listens)
        slots = {listen.played_at // SLOT for listen in listens}
        rows = self._load(slots, [*people.values()]) if people and slots else []
        for play in rows:
            track, _, names, _, slot, listener, _, import_id, reporter = play
            if track and names is not None and names < 0:
                self.has_cut = True
            elif import_id != run and not reporter:
                self.plays[slot, listener].append(play)
        self.near = [play for play in rows if play.track and (not play.client_key or play.import_id != run)]

    def _load(self, slots: set[int], people: Collection[int]) -> list[StoredPlay]:
        dropped = _dropped(slots, people)
        if not [*_any(min(slots) - BEYOND, max(slots) + BEYOND)]:  # most often in a first import in order of time
            return [*map(StoredPlay._make, dropped)]
        reach = range(-BEYOND, BEYOND * self.has_cut + 1)
        near = slots.union(*({slot + by for slot in slots} for by in reach if by))
        most = LAST_ID if self.has_cut else 0  # else rows replace plays only whose times are cut: those of imports
        return [*map(StoredPlay._make, (*_stored(near, people, most), *dropped))]

    def has(self, listen: Listen, lookup: TrackLookup) -> bool:
        """Return whether the row repeats a stored play.

        It repeats a play that was imported with the same names, or whose track now matches the row's ids or names.
        """
        if listen.named.track_id is not None:
            return False
        stored = self.plays.get((listen.played_at // SLOT, self._people.get(listen.listener)), ())
        if not stored:
            return False
        names = matching.hashes(listen)
        for play in stored:
            if matching.hash_of(play.names_hash) in names:
                return True
        alike = lookup.alike(listen.named)
        return any(
            play.track in alike and play.client_key == matching.client_key(listen, play.track, play.listener)
            for play in stored
        )


@compiled
def _any(first: int, last: int) -> Any:
    return Play.select(SQL("1")).where(Play.slot >= first, Play.slot <= last).limit(1)


@compiled
def _stored(slots: Collection[int], people: Collection[int], most: int) -> Any:
    """Select plays whose reporters have ids up to `most`."""
    play = Play.track, Play.played_at, Play.names_hash, Play.duration_ms, Play.slot, Play.listener, Play.client_key
    found = Play.select(*play, Play.import_id, Play.reporter)
    return found.where(Play.slot.in_(slots), Play.listener.in_(people), Play.reporter <= most)


@compiled
def _dropped(slots: Collection[int], people: Collection[int]) -> Any:
    none, row = SQL("0"), (DroppedPlay.slot, DroppedPlay.listener, DroppedPlay.client_key)
    found = DroppedPlay.select(none, none, DroppedPlay.names_hash, none, *row, none, none)
    known = DroppedPlay.names_hash.is_null(is_null=False)
    return found.where(DroppedPlay.slot.in_(slots), DroppedPlay.listener.in_(people), known)


@dataclass(slots=True, eq=False)
class NearPlay:
    """A play near rows of the batch: a stored one or, with its `place` in the batch, one to store."""

    name: str  # of the listener
    track: int
    played_at: int
    names_hash: int | None
    duration_ms: int | None
    slot: int = 0
    listener: int = 0
    client_key: bytes = WITHOUT_ID
    import_id: int | None = None
    place: int | None = None
    free: bool = False  # whether no row of the file stands for it

    @property
    def id(self) -> str:
        return repr((self.name, self.track, self.played_at, self.names_hash or bytes(self.client_key)))


class NearPlays:
    """The plays for which rows of a batch may stand, and those that its rows may replace."""

    def __init__(self, known: KnownPlays, people: Mapping[str, int], lookup: TrackLookup, earlier: SeenIds) -> None:
        """Take the known plays. `people`: the ids of listeners that exist.

        `earlier`: ids of those for which earlier rows of the file stand.
        """
        # `is_needed`: whether times are cut to the minute; otherwise there is nothing to find or to store.
        self.taken: set[str] = set()  # ids of those for which rows of the batch stand
        self._lookup, self._earlier = lookup, earlier
        self.plays: dict[tuple[str, Name, int], list[NearPlay]] = defaultdict(list)  # by listener, name and minute
        self.is_needed = known.has_cut
        if self.is_needed:
            names = {number: name for name, number in people.items()}
            for play in known.near:
                self._add(NearPlay(names[play.listener], *play[:-1]))

    def _names(self, listen: Listen) -> list[Name]:
        named = listen.named
        if named.track_id is not None:
            return [("track", named.track_id)]
        tracks = (("track", track) for track in self._lookup.alike(named))
        return [*tracks, *(("names", each or 0) for each in {*matching.hashes(listen)})]

    def _add(self, play: NearPlay) -> None:
        play.free = play.id not in self.taken and not self._earlier.has(play.id)
        for name in ("track", play.track), ("names", matching.hash_of(play.names_hash) or 0):
            self.plays[play.name, name, play.played_at // MINUTE].append(play)

    def find(self, listen: Listen) -> NearPlay | None:
        """Return the play for which the row stands or which it replaces, or None if there is none."""
        first, own = _first(listen), matching.stored_hash(listen)
        found: list[NearPlay] = []
        for name, minute in product(self._names(listen), (first // MINUTE, first // MINUTE + 1)):
            for play in self.plays.get((listen.listener, name, minute), ()):
                if first <= play.played_at < first + MINUTE and (play.free if listen.to_minute else is_cut(play)):
                    if (play.played_at, play.names_hash) == (listen.played_at, own):
                        return play
                    found.append(play)
        # Rows may be in any order: of two that may stand for two plays, the length tells which stands for which.
        return min(found, key=lambda play: (play.duration_ms != listen.duration_ms, play.played_at), default=None)

    def take(self, play: NearPlay) -> None:
        """Note that a row stands for the play."""
        play.free = False
        self.taken.add(play.id)

    def store(self, listen: Listen, track: int, place: int) -> None:
        """Add the play of a row that the batch stores."""
        names = matching.stored_hash(listen)
        play = NearPlay(listen.listener, track, listen.played_at, names, listen.duration_ms, place=place)
        self._add(play)
        if listen.to_minute:
            self.take(play)

    def replace(self, play: NearPlay, listen: Listen) -> Listen:
        """Let the row replace the play, whose length it takes over if it has none. Return the row."""
        if listen.duration_ms is None:
            listen = listen._replace(duration_ms=play.duration_ms)
        self._add(now := replace(play, played_at=listen.played_at, names_hash=matching.stored_hash(listen)))
        if not play.free:
            self.take(now)
        play.free, play.names_hash = False, None
        return listen


def is_cut(play: NearPlay) -> bool:
    return matching.hash_of(play.names_hash) != play.names_hash


def _first(listen: Listen) -> int:
    """Return the first microsecond of the minute in which the plays are that `NearPlays.find` returns."""
    return listen.played_at if listen.to_minute else listen.played_at - MINUTE + 1
