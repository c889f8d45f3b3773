"""A published week of 25 radio stations, with albums made up: all exports equal a plain count of it."""

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import SECOND, MovableClock, parse
from tests.cli.conftest import Json, Run
from tests.support import export_files, oracle
from tests.support.bounds import Bounds
from tests.support.command import run_at
from tests.support.label_files import write
from tests.support.oracle import AnyPeriod, Named, PlayOf

FILE, SONGS = "classic_rock_plays/classic_rock_plays.csv.gz", "classic_rock_plays/classic-rock-song-list.csv"
LABEL = "radio@label.test"
AGREEING = 2220  # songs; the names of nine others differ in case or were cut
SUNDAY = "2014-06-22"
AFTERNOON, EVENING = parse("2014-06-22T15:10:42.7Z"), parse("2014-06-22T23:59:20Z")  # the second is after all plays
EARLY = {Named("today", SUNDAY, SUNDAY): "parquet", Named("custom", "2014-06-21", SUNDAY): "csv"}
LATE = {
    Named("custom", "2014-06-18", "2014-06-20"): "json",
    Named("all", "2014-06-16", SUNDAY, -1): "parquet",
}
MORE = {Named("7-days", "2014-06-16", SUNDAY): "xlsx", Named("2014-06", "2014-06-01", SUNDAY, 1): "csv"}


Row = dict[str, Any]
Song = tuple[str, str]  # name and artist
KINDS = ("track", "album", "artist")


def table(file: Path) -> list[dict[str, str]]:
    raw = file.read_bytes()
    return list(csv.DictReader(io.StringIO((gzip.decompress(raw) if file.suffix == ".gz" else raw).decode())))


def catalog(rows: list[dict[str, str]]) -> list[Row]:
    """Return a row for each song, with an ISRC and one of the artist's two albums."""
    songs = list(dict.fromkeys((row["song"].strip(), row["artist"].strip()) for row in rows))
    return [
        {
            "track": name,
            "artist": artist,
            "isrc": f"XX-RCK-14-{number:05}",
            "album": f"{artist}, {number % 2}",
            "release_date": f"2014-06-{14 + number % 2 * 4}",
        }
        for number, (name, artist) in enumerate(songs)
        if name and artist
    ]


class Week:
    """All plays of the week: of each track (a song), album and artist (names), and of everything."""

    def __init__(self, rows: list[dict[str, str]], catalog: list[Row]) -> None:
        albums = {(row["track"], row["artist"]): row["album"] for row in catalog}
        numbers = {song: number for number, song in enumerate(albums)}
        self.everything: list[PlayOf] = []
        self.of: dict[str, dict[Any, list[PlayOf]]] = {
            "track": {song: [] for song in albums},
            "album": {album: [] for album in albums.values()},
            "artist": {artist: [] for _, artist in albums},
        }
        for row in rows:
            song = row["song"].strip(), row["artist"].strip()
            if song not in numbers:
                continue
            play = PlayOf(numbers[song], int(row["time"]) * oracle.MICROSECONDS, row["callsign"])
            for kind, name in zip(KINDS, (song, albums[song], song[1]), strict=True):
                self.of[kind][name].append(play)
            self.everything.append(play)

    def exported(self, kind: str, period: AnyPeriod, now: int) -> dict[Any, Row]:
        """Return the figures of every track, album or artist as in exports."""
        return {name: columns(plays, period, now) for name, plays in self.of[kind].items()}

    def by_day(self, period: AnyPeriod, now: int) -> dict[tuple[str, Song], list[int]]:
        """Return the plays and listeners of each day and song."""
        start, end, *_ = oracle.bounds(period, now)
        heard: dict[tuple[str, Song], list[str]] = {}
        for song, plays in self.of["track"].items():
            for play in plays:
                if start <= play.at < end:
                    heard.setdefault((oracle.day(play.at).isoformat(), song), []).append(play.listener)
        return {key: [len(listeners), len(set(listeners))] for key, listeners in heard.items()}


def columns(plays: list[PlayOf], period: AnyPeriod, now: int) -> Row:
    """Return the figures of plays as in exports."""
    start, end, begins, ends = oracle.bounds(period, now)
    within, before = (
        [play for play in plays if one <= play.at < other] for one, other in ((start, end), (begins, ends))
    )
    ever, people, earlier = ({play.listener for play in some} for some in (plays, within, before))
    return {
        "plays_total": len(plays),
        "plays_period": len(within),
        "listeners_total": len(ever),
        "listeners_period": len(people),
        "likes": 0,
        "reposts": 0,
        "plays_change": oracle.growth(len(within), len(before)),
        "listeners_change": oracle.growth(len(people), len(earlier)),
        "first_play": min((oracle.day(play.at).isoformat() for play in plays), default=None),
    }


@pytest.mark.slow
def test_every_export_of_a_published_week_is_counted(
    run: Run,
    ask: Json,
    shared_data: Callable[[str], Path],
    tmp_path: Path,
    bounds: Bounds,
    long: bool,
) -> None:
    bounds(longest_trial=3600)  # a dry run in parts counts names that are new in two of them twice
    published, rows = table(shared_data(SONGS)), table(shared_data(FILE))
    songs = catalog(rows)
    week, until = Week(rows, songs), [row for row in rows if int(row["time"]) * SECOND <= AFTERNOON]
    early = Week(until, songs)
    assert (len(rows), len(week.everything), len(songs)) == (37_673, 37_647, 2_229)
    check_published(week, published, rows)
    try_recipe(run, ask, shared_data(FILE))

    assert ask("import", "catalog", write(tmp_path / "songs.csv", songs), "--user", LABEL)["tracks"]["new"] == 2_229
    import_plays(ask, write(tmp_path / "until.csv", until), new=len(early.everything), repeated=0)
    for period, form in EARLY.items():
        Check(early, MovableClock(AFTERNOON, speed=0), tmp_path, period).files(form)
    rest = [row for row in rows if int(row["time"]) * SECOND > AFTERNOON] + until[:2_000]
    import_plays(ask, write(tmp_path / "rest.csv", rest), new=37_647 - len(early.everything), repeated=2_000)
    clock = MovableClock(EVENING, speed=0)
    for period, form in {**LATE, **(MORE if long else {})}.items():
        Check(week, clock, tmp_path, period).files(form)
    assert run("plays", "recount", "--check").stderr.endswith("No differences.\n")


def check_published(week: Week, published: list[dict[str, str]], rows: list[dict[str, str]]) -> None:
    """Compare the plays of songs with the published counts, which know a song by a text that its plays have, too."""
    spelled: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        if row["song"].strip() and row["artist"].strip():
            spelled.setdefault(row["combined"], set()).add((row["song"].strip(), row["artist"].strip()))
    counts = {text: sum(len(week.of["track"][song]) for song in songs) for text, songs in spelled.items()}
    assert sum(counts.get(row["COMBINED"]) == int(row["PlayCount"]) for row in published) == AGREEING


def try_recipe(run: Run, ask: Json, file: Path) -> None:
    """Try the recipe of docs/import.md, for which the file is as it was published."""
    run("user", "create", LABEL)
    run("access", "grant", LABEL)
    tried = ask("import", "plays", str(file), "--create-missing", "--dry-run")
    assert (tried["plays"]["new"], tried["plays"]["refused"]) == (37_647, 26)
    assert (tried["tracks"]["new"], tried["artists"]["new"]) == (2_229, 476)


def import_plays(ask: Json, file: str, *, new: int, repeated: int) -> None:
    done = ask("import", "plays", file, "--user", LABEL)["plays"]
    assert (done["new"], done["repeated"]) == (new, repeated)


class Check:
    """Compare the figures of a period with those of the week's plays."""

    def __init__(self, week: Week, clock: MovableClock, folder: Path, period: Named) -> None:
        self.week = week
        self.clock = clock
        self.folder = folder
        self.period = period
        custom = period.name == "custom"
        self.options = ["--from", period.first, "--to", period.last] if custom else ["--period", period.name]

    def export(self, type_: str, form: str) -> Path:
        file = self.folder / f"{type_}.{form}"
        run_at(self.clock, "export", type_, *self.options, "--user", LABEL, "-o", str(file))
        return file

    def files(self, form: str) -> None:
        """Compare every row of the exports with a count."""
        names_of: dict[str, dict[int, Any]] = {}
        for kind in KINDS:
            rows = export_files.rows(self.export(f"{kind}s", form))
            names = [(row["track"], row["artists"]) if kind == "track" else row[kind] for row in rows]
            names_of[kind] = dict(zip((row[f"{kind}_id"] for row in rows), names, strict=True))
            expected = self.week.exported(kind, self.period, self.clock.now())
            if form == "xlsx":
                now = self.clock.now()
                expected = {name: export_files.for_people(row, self.period, now) for name, row in expected.items()}
            found = {name: {each: row[each] for each in expected[name]} for name, row in zip(names, rows, strict=True)}
            assert found == expected
        days = [tuple(row.values())[:6] for row in export_files.rows(self.export("plays", form))]
        expected_days = self.week.by_day(self.period, self.clock.now())
        assert {(day, names_of["track"][track]): counts for day, track, _, _, *counts in days} == expected_days
        assert len(days) == len(expected_days)
