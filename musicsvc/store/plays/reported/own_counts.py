"""Daily numbers of own plays by track: plays that the listeners' own accounts reported.

They stay when the single plays of a day are deleted. Those of days that were deleted before these numbers were stored
are not known.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from musicsvc.store.engine import dialect
from musicsvc.store.engine.sql import fetch, run_many
from musicsvc.store.plays.periods import SLOTS_PER_DAY, to_date
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

ADD = """
    INSERT INTO own_play_day (track_id, day, plays) {rows}
    ON CONFLICT (track_id, day) DO UPDATE SET plays = own_play_day.plays + excluded.plays
"""
TYPES = ("bigint", "int", "bigint")
COUNT = f"""
    SELECT play.track_id, play.slot / {SLOTS_PER_DAY}, count(*)
    FROM play JOIN listener ON listener.id = play.listener_id
    WHERE substr(listener.key, 1, 8) = 'account:' AND {{which}}
    GROUP BY play.track_id, play.slot / {SLOTS_PER_DAY}
"""  # noqa: S608 - a constant
COUNT_DAY = COUNT.format(which="play.slot >= ? AND play.slot < ?")
COUNT_ALL = COUNT.format(which="play.reporter > 0 AND play.slot + 0 >= ?")  # reads the index `play_of_reporter`
STORED_OF_DAY = "SELECT track_id FROM own_play_day WHERE day = ? AND track_id {among}"
STORED = "SELECT track_id, day, plays FROM own_play_day WHERE day >= ?"
DELETE = "DELETE FROM own_play_day WHERE track_id = ? AND day = ?"
PERIOD = "SELECT CAST(COALESCE(sum(o.plays), 0) AS BIGINT) FROM {of} AND o.day >= ? AND o.day <= ?"
TRACKS = {
    TRACK: "own_play_day o WHERE o.track_id = ?",
    ALBUM: "track t CROSS JOIN own_play_day o WHERE t.album_id = ? AND o.track_id = t.id",
    ARTIST: "track_artist l CROSS JOIN own_play_day o WHERE l.artist_id = ? AND o.track_id = l.track_id",
}
KNOWN_FROM = "SELECT own_from FROM play_mark"
COMPARED_FROM = "SELECT kept_from FROM play_mark"
Key = tuple[int, int, int]  # TRACK, a track and a day since 1970-01-01


class OwnPlays(NamedTuple):
    """A number of own plays. Those before the day `known_from` (since 1970-01-01) are not known."""

    plays: int
    known_from: int


def add(new: Mapping[tuple[int, int], int]) -> None:
    """Add numbers of new own plays, by track and day."""
    dialect.insert_many(ADD, TYPES, sorted((*key, plays) for key, plays in new.items()))


def recount(day: int, tracks: Collection[int]) -> None:
    """Count the own plays of some tracks on a day again, after plays were deleted."""
    among, ids = dialect.in_list(tracks)
    stored = {track for (track,) in fetch(STORED_OF_DAY.format(among=among), day, ids)}
    if stored:
        run_many(DELETE, [(track, day) for track in sorted(stored)])
        rows = fetch(COUNT_DAY, day * SLOTS_PER_DAY, (day + 1) * SLOTS_PER_DAY)
        add({(track, day): plays for track, _, plays in rows if track in stored})


def of_period(subject: Subject, first: int, last: int) -> OwnPlays:
    """Return the own plays of the tracks of an artist or album, or of a track, from day `first` to day `last`."""
    ((plays,),) = fetch(PERIOD.format(of=TRACKS[subject.kind]), subject.id, first, last)
    ((known_from,),) = fetch(KNOWN_FROM)
    return OwnPlays(int(plays), int(known_from))


@dataclass(slots=True)
class OwnComparison:
    """Stored and recomputed numbers of own plays, by key."""

    stored: dict[Key, int]
    expected: dict[Key, int]
    plays = 0

    @property
    def rows(self) -> int:
        return len(self.expected.keys() | self.stored.keys())

    def differing(self) -> list[Key]:
        keys = self.stored.keys() | self.expected.keys()
        return sorted(key for key in keys if self.stored.get(key) != self.expected.get(key))

    def sizes(self, key: Key) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (plays, 0) as stored, then as recomputed."""
        return (self.stored.get(key, 0), 0), (self.expected.get(key, 0), 0)

    def name(self, key: Key) -> str:
        """Return the row's name for people, such as `track 7, 2026-01-31: own plays`."""
        return f"track {key[1]}, {to_date(key[2])}: own plays"

    def repair(self, keys: Sequence[Key]) -> None:
        run_many(DELETE, [key[1:] for key in keys])
        add({key[1:]: self.expected[key] for key in keys if key in self.expected})


def compare() -> OwnComparison:
    """Compare the stored numbers with the single plays, for the days whose single plays are kept."""
    ((first,),) = fetch(COMPARED_FROM)
    stored = {(TRACK, track, day): plays for track, day, plays in fetch(STORED, first)}
    expected = {(TRACK, track, day): plays for track, day, plays in fetch(COUNT_ALL, first * SLOTS_PER_DAY)}
    return OwnComparison(stored, expected)
