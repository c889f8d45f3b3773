"""Rows whose time is cut to the minute, and the plays that they stand for.

Such a row is the play of its track and listener that began in the minute from the row's time: the first for which no
other row of the file stands. If there is none, the row is stored with its own time, until a row of that play, with its
full time, replaces it. `matching.stored_hash` tells stored plays of such rows from others.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from peewee import SQL

from musicsvc.clock import MINUTE
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.plays import matching
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import SeenIds, TrackLookup
from musicsvc.store.models import Play
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT

BEYOND = MINUTE // SLOT  # slots before or after that of a row, in which a play of its minute may be
Name = tuple[str, int]  # "track" and an id, or "names" and a hash


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

    def __init__(
        self, listens: Sequence[Listen], people: Mapping[str, int], run: int, lookup: TrackLookup, earlier: SeenIds
    ) -> None:
        """Load the plays. `earlier`: ids of those for which earlier rows of the file stand. Call in a transaction.

        `people`: the ids of listeners that exist.
        """
        # `is_needed`: whether times are cut to the minute; otherwise there is nothing to find or to store.
        self.taken: set[str] = set()  # ids of those for which rows of the batch stand
        self._lookup, self._earlier = lookup, earlier
        self.plays: dict[tuple[str, Name, int], list[NearPlay]] = defaultdict(list)  # by listener, name and minute
        is_cut, ids = any(each.to_minute for each in listens), [*people.values()]
        own = {each.played_at // SLOT for each in listens}
        slots = {slot + near for slot in own for near in range(-BEYOND, BEYOND * is_cut + 1)}
        self.is_needed = is_cut or (bool(ids) and bool(_cut(slots, ids)))
        if self.is_needed and ids:
            named = {name for each in listens for name in self._names(each)}
            tracks, hashes = ([number for kind, number in named if kind == of] for of in ("track", "names"))
            names = {number: name for name, number in people.items()}
            for row in _near(slots, ids, tracks, [*hashes, *(~each for each in hashes)], run):
                play = NearPlay("", *row)
                play.name = names[play.listener]
                self._add(play)

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


@compiled
def _cut(slots: Collection[int], people: Collection[int]) -> Any:
    return Play.select(SQL("1")).where(Play.slot.in_(slots), Play.listener.in_(people), Play.names_hash < 0).limit(1)


@compiled
def _near(
    slots: Collection[int], people: Collection[int], tracks: Collection[int], hashes: Collection[int], run: int
) -> Any:
    """Select the plays of these tracks or names. Two client_ids of the same file are two plays."""
    play = (Play.track, Play.played_at, Play.names_hash, Play.duration_ms, Play.slot, Play.listener, Play.client_key)
    others = (Play.client_key == WITHOUT_ID) | (Play.import_id != run) | Play.import_id.is_null()
    named = Play.track.in_(tracks) | Play.names_hash.in_(hashes)
    return Play.select(*play, Play.import_id).where(Play.slot.in_(slots), Play.listener.in_(people), named, others)
