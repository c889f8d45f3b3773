"""Compare recounted figures with those of this database, of days of which both have the same plays."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from musicsvc.clock import isoformat
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays.periods import SLOTS_PER_DAY, Window, to_date
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import NOUNS, Subject
from musicsvc.store.recounting.dump import Dump
from musicsvc.wording import quantity

BY_DAY = f"SELECT slot / {SLOTS_PER_DAY}, COUNT(*) FROM play GROUP BY 1"  # noqa: S608 - a constant
SHOWN_DAYS = 3
JSON = Mapping[str, Any]
# Parts of the path of figures that depend on more days than those of the window.
GROWTH = "growth"
ALL_TIME = {"total", "first_play", "new_listeners", "returning_listeners", "tracks", "top_tracks", "top_albums"}


class Difference(NamedTuple):
    """A figure of a track, album or artist (`kind`), by its path in JSON. None if one side does not have it."""

    kind: str
    id: int
    figure: str
    served: Any
    recounted: Any


class Comparable(NamedTuple):
    """Says whether dump and database have the same plays of the window, of the earlier window, and of all time.

    `changed`: the days whose numbers of plays differ, and `deleted`: whether single plays of early days were deleted.
    """

    within: bool
    earlier: bool
    ever: bool
    changed: list[int]
    deleted: bool

    def includes(self, path: str) -> bool:
        """Return whether the figure with this path can be compared."""
        parts = {*path.split(".")}
        if len(parts) == 1:  # a name, or a number of tracks
            return True
        if parts & ALL_TIME:
            return self.ever
        return self.within and (self.earlier or GROWTH not in parts)


def comparable(dump: Dump, window: Window) -> Comparable:
    """Compare the numbers of plays of each day in the dump with those in this database."""
    dumped, stored = dump.rows_by_day(), dict(fetch(BY_DAY))
    kept_from = max(dump.complete_from, blocks.progress().kept_from)
    days = sorted(dumped.keys() | stored.keys())
    changed = [day for day in days if day >= kept_from and dumped.get(day) != stored.get(day)]

    def same(one: Window) -> bool:
        return kept_from <= one.first and not any(one.first <= day <= one.last for day in changed)

    earlier = window.compared_with is None or same(window.before)
    return Comparable(same(window), same(window) and earlier, not changed and not kept_from, changed, bool(kept_from))


def differences(subject: Subject, served: JSON, recounted: JSON, which: Comparable) -> Iterator[Difference]:
    """Yield the figures that differ, of those that can be compared. If one side has none, only the name differs."""
    one, other = dict(_flat(served)), dict(_flat(recounted))
    for path in one | other if one and other else ("name",):
        if which.includes(path) and one.get(path) != other.get(path):
            yield Difference(NOUNS[subject.kind], subject.id, path, one.get(path), other.get(path))


def explain(dump: Dump, which: Comparable) -> list[str]:
    """Return sentences that say which figures were not compared, and why."""
    lines = []
    if which.changed:
        days = ", ".join(f"{to_date(day)}" for day in which.changed[:SHOWN_DAYS])
        days += " and later" if len(which.changed) > SHOWN_DAYS else ""
        changed = quantity(len(which.changed), "day")
        lines.append(f"Since the dump ({isoformat(dump.dumped_at)}), plays of {changed} changed: {days}.")
    if which.deleted:
        lines.append("Plays of early days were deleted.")
    if lines:
        left_out = ["of all time"] * (not which.ever) + ["growth"] * (not which.earlier)
        left_out += ["of the period"] * (not which.within)
        lines.append(f"Figures that include such days were not compared: {', '.join(left_out) or 'none'}.")
    return lines


def _flat(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value in JSON with its path, such as `charts.points.2026-10-31.plays`."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _flat(value, f"{path}.{key}" if path else key)
    elif isinstance(data, list | tuple):
        for place, value in enumerate(data):
            name = value.get("date", place) if isinstance(value, Mapping) else place
            yield from _flat(value, f"{path}.{name}")
    else:
        yield path, data
