"""A published week of 25 radio stations: our figures equal the published ones, and those of a plain recount."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from musicsvc.clock import DAY, SECOND
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import histories
from musicsvc.store.importing import plays as importing
from musicsvc.store.insights import figures
from musicsvc.store.insights.listening import listening, milestones
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.plays import periods, verify
from musicsvc.store.plays.rollups.reader import PlayStats
from musicsvc.store.plays.subjects import ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import listening_oracle as oracle
from tests.support import play_counts
from tests.support.listening_oracle import TimedPlay

PAIRS = ("song=track", "callsign=listener", "time=played_at", "unique_id=client_id")
AGREEING = 2220
Song = tuple[str, str]


def table(file: Path) -> list[dict[str, str]]:
    raw = file.read_bytes()
    return list(csv.DictReader(io.StringIO((gzip.decompress(raw) if file.suffix == ".gz" else raw).decode())))


def songs(store: Store) -> dict[Song, int]:
    """Return the track of each song and artist."""

    def read() -> dict[Song, int]:
        query = Track.select(Track.name, Artist.name, Track.id).join(TrackArtist).join(Artist)
        return {(song, artist): track for song, artist, track in query.tuples().iterator()}

    return store.read(read).result()


def test_plays_and_listeners_are_those_that_were_published(store: Store, shared_data: Callable[[str], Path]) -> None:
    file = shared_data("classic_rock_plays/classic_rock_plays.csv.gz")
    published = table(shared_data("classic_rock_plays/classic-rock-song-list.csv"))
    rows = [row for row in table(file) if row["song"].strip() and row["artist"].strip()]
    for expected in ((len(rows), 0), (0, len(rows))):
        with histories.open_file(file, mapped=True) as reader:
            options = importing.PlayOptions(PAIRS, create_missing=True)
            summary = importing.run(store, reader, options, now=NOW, on_progress=lambda _: None)
        done = summary.counts["plays"]
        assert (done.new, done.repeated) == expected
        assert (summary.rows, done.refused) == (37_673, 37_673 - len(rows))

    plain = Counter((row["song"].strip(), row["artist"].strip()) for row in rows)
    stations = defaultdict(set)
    for row in rows:
        stations[row["song"].strip(), row["artist"].strip()].add(row["callsign"])
    tracks = songs(store)

    def heard() -> dict[Song, PlayStats]:
        return {song: play_counts.all_time(TRACK, track) for song, track in tracks.items()}

    found = store.read(heard).result()
    assert {song: (each.plays, len(each.listeners)) for song, each in found.items()} == {
        song: (count, len(stations[song])) for song, count in plain.items()
    }
    # The list knows its songs by a text that their plays bear, too; nine of them differ in case or were cut.
    spelled = defaultdict(set)
    for row in rows:
        spelled[row["combined"]].add((row["song"].strip(), row["artist"].strip()))
    count = Counter(row["combined"] for row in rows)
    agreeing = [row for row in published if count.get(row["COMBINED"]) == int(row["PlayCount"])]
    assert len(agreeing) == AGREEING
    for row in agreeing:
        assert sum(found[song].plays for song in spelled[row["COMBINED"]]) == int(row["PlayCount"])
    _artists_are_unions(store, rows)
    _growth_compares_like_with_like(store, rows)
    _listening_hours_and_milestones_are_counted(store, rows)
    assert verify.run(store, check=True, on_progress=lambda _done, _total: None).differing == 0


def _artists_are_unions(store: Store, rows: list[dict[str, str]]) -> None:
    """Return the ten most played artists of the week, with plays added and listeners united over the days."""
    most = Counter(row["artist"].strip() for row in rows).most_common(10)
    now = max(int(row["time"]) for row in rows) * SECOND
    window = periods.window("7-days", now)

    def read() -> dict[str, tuple[int, int]]:
        ids = dict(Artist.select(Artist.name, Artist.id).tuples().iterator())
        heard = {name: play_counts.in_windows(Subject(ARTIST, ids[name]), window)[0] for name, _ in most}
        return {name: (each.plays, len(each.listeners)) for name, each in heard.items()}

    within = [row for row in rows if int(row["time"]) * SECOND // DAY in window.numbers]
    assert store.read(read).result() == {
        name: (
            sum(row["artist"].strip() == name for row in within),
            len({row["callsign"] for row in within if row["artist"].strip() == name}),
        )
        for name, _ in most
    }


def _growth_compares_like_with_like(store: Store, rows: list[dict[str, str]]) -> None:
    """Count the plays and stations of the most played artists in days of 2014, and in those before, in the file."""
    of: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        of[row["artist"].strip()].append((int(row["time"]), row["callsign"]))
    last = max(time for times in of.values() for time, _ in times)
    ids = store.read(lambda: dict(Artist.select(Artist.name, Artist.id).tuples().iterator())).result()
    seen = set()
    for days, now in ((1, last), (2, last - 20_000), (3, last - 86_400 // 2)):
        today = now // 86_400
        window = periods.between(periods.to_date(today + 1 - days), periods.to_date(today), now * SECOND)
        begins = (today + 1 - days) * 86_400
        spans = (begins, (today + 1) * 86_400), (begins - days * 86_400, now - days * 86_400)
        for name, heard in sorted(of.items(), key=lambda each: -len(each[1]))[:20]:
            counted = [[play for play in heard if first <= play[0] < end] for first, end in spans]
            sizes = [(len(plays), len({station for _, station in plays})) for plays in counted]
            read = partial(figures.figures, Subject(ARTIST, ids[name]), window)
            found = store.read(read).result()
            assert (found.plays, found.listeners) == sizes[0]
            changes = [round((now - before) * 100 / before, 1) for now, before in zip(*sizes, strict=True) if before]
            assert [found.plays_change, found.listeners_change] == (changes or [None, None])
            seen.add(found.plays_change)
    assert len(seen) > 20


def _listening_hours_and_milestones_are_counted(store: Store, rows: list[dict[str, str]]) -> None:
    """Count hours, new stations and milestones of the most played artists in the file."""
    of: dict[str, list[TimedPlay]] = defaultdict(list)
    for row in rows:
        of[row["artist"].strip()].append(TimedPlay(0, int(row["time"]) * SECOND, row["callsign"], None))
    ids = store.read(lambda: dict(Artist.select(Artist.name, Artist.id).tuples().iterator())).result()
    first = min(play.at for plays in of.values() for play in plays) // DAY
    reached = set()
    for name, plays in sorted(of.items(), key=lambda each: -len(each[1]))[:20]:
        subject = Subject(ARTIST, ids[name])
        found = shapes.milestones(store.read(partial(milestones.build, subject)).result())
        assert found == oracle.milestones(plays)
        reached |= {each["count"] for each in found["plays"]}
        for window in (periods.Window("", first, first + 8), periods.Window("", first + 3, first + 5)):
            days = periods.to_date(window.first), periods.to_date(window.end - 1)
            assert store.read(partial(listening.hours, subject, window)).result().plays == oracle.hours(plays, *days)
            heard = shapes.listening(store.read(partial(listening.build, subject, window)).result())
            assert {"period": heard["period"]} | oracle.listening(plays, {0: 0}, *days) == heard
    assert reached == {100, 1_000}
