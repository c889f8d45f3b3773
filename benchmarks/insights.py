"""Time of uncached figures for the most played track and an artist of 50 popular tracks; and from single plays.

    python benchmarks/insights.py [--plays 1000000 10000000] [--folder FOLDER]

Creates a database for each number of plays (plays_world.py; ten million take some minutes and 2 GB) and measures them
in turn, so that other work on the machine affects all alike. With `--folder` the databases are kept and used again.
Times are CPU time of a store thread: *figures* are the four blocks with the window before; *answer*, *listening*,
*hours*, *milestones* and *release* are whole endpoints without HTTP (*answer* with rights); *report*, *pdf* and *csv*
are the report of the artist as JSON, the content of the PDF file before it is drawn, and the export of the artist's
tracks. *Raw* counts the same plays and listeners of both windows in the table of plays, with a covering index that the
program itself does not have.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson
import plays_world
from spread import spread

from musicsvc.reports import pdf, tables
from musicsvc.server.handlers import insights as handlers
from musicsvc.server.handlers import listening
from musicsvc.server.schemas.listening import ReleaseQuery
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.server.shapes import exports as shapes
from musicsvc.store.accounts import tokens
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import charts, export_rows, overview
from musicsvc.store.insights import figures as insight_figures
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import SLOT, TIMEFRAMES, Window, window
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

ROUNDS, REPEATS = 9, 15
SUBJECTS = {"track": Subject(TRACK, 1), "artist": Subject(ARTIST, 1)}
PERIODS = ("30-days", "1-year")
GOALS = {"30-days": 1.0, "1-year": 4.0}  # milliseconds of the figures
INDEX = "CREATE INDEX IF NOT EXISTS raw ON play (track_id, slot, listener_id)"
RAW = """
    SELECT COUNT(*), COUNT(DISTINCT listener_id) FROM play
    WHERE track_id IN (SELECT track_id FROM track_artist WHERE {those}) AND slot >= ? AND slot < ?
"""
THOSE = {TRACK: "track_id = ?", ARTIST: "artist_id = ?"}
ARTIST_ALONE = Scope(artist=1)
Case = tuple[str, str, str]


class World(NamedTuple):
    """A store, and an account that may read its figures."""

    store: Store
    manager: Identity


Measured = Callable[[World, Subject, str], object]


def main() -> None:
    """Create the databases, measure, print."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--plays", type=int, nargs="+", default=[1_000_000, 10_000_000])
    wanted.add_argument("--folder", type=Path)
    options = wanted.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        worlds = {plays: _world(stack, folder / str(plays), plays) for plays in sorted(options.plays)}
        _tell(worlds, _measure(worlds))
        _tell_raw(worlds[max(worlds)])


def _world(stack: ExitStack, folder: Path, plays: int) -> World:
    store = stack.enter_context(plays_world.kept(folder, plays))
    manager = store.read(partial(tokens.identify, tokens.digest(plays_world.token(store)))).result()
    assert manager is not None
    return World(store, manager)


def _measure(worlds: dict[int, World]) -> dict[Case, dict[int, list[float]]]:
    """Return the milliseconds of each case in each database, one median per round."""
    found: dict[Case, dict[int, list[float]]] = {}
    for _ in range(ROUNDS):
        for noun, subject in SUBJECTS.items():
            for period in PERIODS:
                for what, ask in (ANSWERS | REPORTS if noun == "artist" else ANSWERS).items():
                    for plays, world in worlds.items():
                        unit = partial(ask, world, subject, period)
                        times = found.setdefault((noun, period, what), {}).setdefault(plays, [])
                        times.append(world.store.read(partial(_timed, unit, REPEATS)).result())
    return found


def _timed(unit: Callable[[], object], repeats: int) -> float:
    """Return the median milliseconds of a unit, on a store thread."""
    times = []
    for _ in range(repeats):
        began = time.thread_time()
        unit()
        times.append(1e3 * (time.thread_time() - began))
    return statistics.median(times)


def _figures(_world: World, subject: Subject, period: str) -> object:
    return insight_figures.figures(subject, window(period, plays_world.NOW))


def _answer(world: World, subject: Subject, period: str) -> object:
    query, now = PeriodQuery.model_validate({"period": period}), plays_world.NOW
    find = insight_figures.track_of if subject.kind == TRACK else insight_figures.artist_of
    return orjson.dumps(handlers.show(find(subject.id, actor=world.manager), query, now))


def _chart(world: World, subject: Subject, period: str) -> object:
    timeframe = next(short for short, name in TIMEFRAMES.items() if name == period)
    query = TimeframeQuery.model_validate({"timeframe": timeframe})
    find = insight_figures.track_of if subject.kind == TRACK else insight_figures.artist_of
    return orjson.dumps(handlers.chart(find(subject.id, actor=world.manager), query, plays_world.NOW))


def _report(_world: World, _subject: Subject, period: str) -> object:
    found = overview.build(ARTIST_ALONE, window(period, plays_world.NOW))
    return orjson.dumps(shapes.report(found, plays_world.NOW, charts=False))


def _pdf(_world: World, _subject: Subject, period: str) -> object:
    found = overview.build_for_print(ARTIST_ALONE, window(period, plays_world.NOW), plays_world.NOW)
    return pdf.page_data(shapes.printed(found, plays_world.NOW))


def _csv(_world: World, _subject: Subject, period: str) -> object:
    with export_rows.cells("tracks", ARTIST_ALONE, window(period, plays_world.NOW)) as rows:
        return b"".join(tables.csv(tables.Table(export_rows.COLUMNS["tracks"], rows, {})))


def _listening(_world: World, subject: Subject, period: str) -> object:
    query = PeriodQuery.model_validate({"period": period})
    return orjson.dumps(listening.listening(subject, query, plays_world.NOW))


def _hours(_world: World, subject: Subject, period: str) -> object:
    query = PeriodQuery.model_validate({"period": period})
    return orjson.dumps(listening.hours(subject, query, plays_world.NOW))


def _milestones(_world: World, subject: Subject, _period: str) -> object:
    return orjson.dumps(listening.milestones(subject))


def _release(world: World, _subject: Subject, _period: str) -> object:
    query = ReleaseQuery.model_validate({"against": "2"})
    return orjson.dumps(listening.compare_releases(Subject(ALBUM, 1), query, world.manager, plays_world.NOW))


ANSWERS: dict[str, Measured] = {
    "figures": _figures,
    "answer": _answer,
    "chart": _chart,
    "listening": _listening,
    "hours": _hours,
    "milestones": _milestones,
}
# Of artists only; releases are those of the artist's two first albums.
REPORTS: dict[str, Measured] = {"report": _report, "pdf": _pdf, "csv": _csv, "release": _release}


def _tell(worlds: dict[int, World], found: dict[Case, dict[int, list[float]]]) -> None:
    least, most = min(worlds), max(worlds)
    print(f"milliseconds of CPU, medians of {ROUNDS} rounds (least … most)")
    for (noun, period, what), times in found.items():
        shown = (f"{plays:,} plays: {spread(each, 2)}" for plays, each in times.items())
        growth = statistics.median(times[most]) / statistics.median(times[least])
        goal = f"; goal {GOALS[period]:.0f} ms" if what == "figures" else ""
        print(f"{noun:7}{period:8} {what:8} {'; '.join(shown)}; growth {growth:.2f}{goal}")


def _tell_raw(world: World) -> None:
    world.store.write(lambda: fetch(INDEX)).result()
    for noun, subject in SUBJECTS.items():
        for period in PERIODS:
            days = window(period, plays_world.NOW)
            raw, ours, figures = [], [], partial(_figures, world, subject, period)
            for _ in range(3):
                raw.append(world.store.read(partial(_timed, partial(_raw, subject, days), 1)).result())
                ours.append(world.store.read(partial(_timed, figures, REPEATS)).result())
            _agree(world, subject, days)
            ratio = statistics.median(raw) / statistics.median(ours)
            print(f"{noun:7}{period:8} raw {statistics.median(raw):.0f} ms: {ratio:.0f} times as long (goal 50)")


def _raw(subject: Subject, days: Window) -> list[tuple[int, int]]:
    statement = RAW.format(those=THOSE[subject.kind])
    # All plays of this world are at the beginning of their slot.
    spans = [(each.starts // SLOT, -(-each.ends // SLOT)) for each in (days, days.before)]
    return [tuple(fetch(statement, subject.id, *span)[0]) for span in spans]


def _agree(world: World, subject: Subject, days: Window) -> None:
    """Check that the figures, the chart and the plays agree."""
    figures = world.store.read(partial(insight_figures.figures, subject, days)).result()
    (plays, people), before = world.store.read(partial(_raw, subject, days)).result()
    assert (figures.plays, figures.listeners) == (plays, people)
    assert figures.plays_change == insight_figures.change(plays, before[0])
    assert figures.listeners_change == insight_figures.change(people, before[1])
    totals = world.store.read(partial(charts.build, subject, days)).result().totals
    assert totals[:2] == (plays, people)


if __name__ == "__main__":
    main()
