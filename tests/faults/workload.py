"""Writing units, each atomic, and the checks of their effects afterwards.

A lane is a caller that waits for one answer before its next request. The name of its n-th unit, `run/lane/n`, alone
determines the effect of the unit, so that only a list of names has to outlive the writer.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from musicsvc.clock import DAY, parse
from musicsvc.errors import Damaged, Unavailable
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Play, Tag, Track
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest, periods, verify
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.schema import schema

PARTS = 3  # tags that one unit writes with their genre
NOW = parse("2026-03-01T12:00:00Z")
TRACKS = 5
REFUSALS = (Unavailable, Damaged)  # SQLite reports a read error (EIO) as damage


def prepare() -> None:
    """Create the rows that units refer to; call it in a writing unit, on an empty database."""
    for number in range(TRACKS):
        Track.create(name=f"Track {number}", duration=1, created_at=NOW)


def unit(name: str) -> None:
    """Run the n-th unit of a lane: it creates a genre and its tags, removes an earlier one, or adds plays."""
    {"add": _add, "remove": _remove, "report": _report}[kind(name)](name)


def kind(name: str) -> str:
    """Return the kind of the unit."""
    return {3: "remove", 4: "report"}.get(_number(name) % 5, "add")


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


def next_name(name: str) -> str:
    """Return the name of the next unit of the lane."""
    return f"{name.rpartition('/')[0]}/{_number(name) + 1}"


def _removed(name: str) -> str:
    """Return the name of the unit whose effect a removing unit removes."""
    return f"{name.rpartition('/')[0]}/{_number(name) - 2}"


def _add(name: str) -> None:
    Genre.insert(name=name, display_name="x" * int(Random(name).expovariate(1 / 600))).execute()
    for part in range(PARTS):
        Tag.insert(name=f"{name}.{part}").execute()


def _remove(name: str) -> None:
    gone = _removed(name)
    Genre.delete().where(Genre.name == gone).execute()
    Tag.delete().where(Tag.name.in_([f"{gone}.{part}" for part in range(PARTS)])).execute()


def _batch(name: str) -> list[tuple[bytes, int, str]]:
    """Return the plays of a unit as keys, days back and listeners."""
    size = Random(name).randint(1, 30)
    return [(ingest.client_key("workload", f"{name}.{at}"), at % 3, f"listener {at % 7}") for at in range(size)]


def _report(name: str) -> None:
    batch = _batch(name)
    ids = listeners.ensure({listeners.opaque_key(listener) for *_, listener in batch})
    ingest.record(
        PlayRow(
            slot=(NOW - back * DAY) // periods.SLOT,
            track=1 + at % TRACKS,
            listener=ids[listeners.opaque_key(listener)],
            client_key=key,
            played_at=NOW - back * DAY,
            duration_ms=None,
            reporter=0,
        )
        for at, (key, back, listener) in enumerate(batch)
    )


@dataclass
class Ledger:
    """The knowledge of the callers: requested, acknowledged and certainly refused units.

    `certain` tells whether a refusal of this moment says that nothing was changed; not when the power is gone.
    """

    certain: Callable[[], bool] = lambda: True
    asked: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)

    def submit(self, store: Store, name: str) -> Callable[[], bool]:
        """Submit the unit. Return a function that waits for its result and records it."""
        self.asked.add(name)
        future = store.write(partial(unit, name))

        def settle() -> bool:
            error = future.exception(60)
            if error is None:
                self.acknowledged.add(name)
            elif self.certain():
                self.refused.add(name)
                if not isinstance(error, REFUSALS):
                    self.odd.append(f"{name} was refused with {error!r}")
            return error is None

        return settle


def faults(store: Store, ledger: Ledger) -> list[str]:
    """Return a line for each lost or half-done effect."""
    found = store.read(partial(_look, ledger)).result()
    report = verify.run(store, check=True, on_progress=lambda *_: None)
    found += [f"figures differ: {difference}" for difference in report.differences]
    return ledger.odd + found + store.read(schema.problems).result()


def _look(ledger: Ledger) -> list[str]:
    genres = {genre.name for genre in Genre.select(Genre.name)}
    tags = Counter(tag.name.rpartition(".")[0] for tag in Tag.select(Tag.name))
    reported = {bytes(play.client_key) for play in Play.select(Play.client_key)}
    found = [f"{name} is half done" for name in genres | set(tags) if (name in genres, tags[name]) != (True, PARTS)]
    for name in sorted(ledger.asked):
        found += _lost(name, ledger, genres, reported)
    return found


def _lost(name: str, ledger: Ledger, genres: set[str], reported: set[bytes]) -> Iterator[str]:
    """Yield the faults in the effect of one unit."""
    if kind(name) == "remove":
        if name in ledger.acknowledged and _removed(name) in genres:
            yield f"{name} was acknowledged, and {_removed(name)} is there again"
        return
    if kind(name) == "report":
        keys = {key for key, *_ in _batch(name)}
        there = len(keys & reported)
        if there not in {0, len(keys)}:
            yield f"{name} is half done: {there} of {len(keys)} plays"
    else:
        there = name in genres
        if f"{name.rpartition('/')[0]}/{_number(name) + 2}" in ledger.asked and _number(name) % 5 == 1:
            return  # it may have been removed; the removing unit is checked for that
    if name in ledger.acknowledged and not there:
        yield f"{name} was acknowledged, and is lost"
    if name in ledger.refused and there:
        yield f"{name} was refused, and is there"
