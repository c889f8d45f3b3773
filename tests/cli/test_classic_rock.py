"""A published week of 25 radio stations: all figures in all files and answers equal a plain count of its plays."""

import csv
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import SECOND, MovableClock, parse
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Json, Run
from tests.support import export_files
from tests.support import listening_oracle as oracle
from tests.support.classic_rock import KINDS, Week, catalog, columns, table, with_durations
from tests.support.command import run_at
from tests.support.oracle import Named
from tests.support.pdf_text import printed
from tests.support.serving import Client, running

Rows = list[dict[str, Any]]

FILE, SONGS = "classic_rock_plays/classic_rock_plays.csv.gz", "classic_rock_plays/classic-rock-song-list.csv"
PAIRS = ("song=track", "callsign=listener", "time=played_at", "unique_id=client_id")
RECIPE = [word for pair in PAIRS for word in ("--map", pair)]
LABEL = "radio@label.test"
AGREEING = 2220  # songs; the names of nine others differ in case or were cut
SUNDAY = "2014-06-22"
AFTERNOON, EVENING = parse("2014-06-22T15:10:42.7Z"), parse("2014-06-22T23:59:20Z")  # the second is after all plays
EARLY = {Named("today", SUNDAY, SUNDAY): "parquet", Named("custom", "2014-06-21", SUNDAY): "csv"}
LATE = {
    Named("custom", "2014-06-18", "2014-06-20"): "xlsx",
    Named("all", "2014-06-16", SUNDAY, -1): "parquet",
}
MORE = {Named("7-days", "2014-06-16", SUNDAY): "json", Named("2014-06", "2014-06-01", SUNDAY, 1): "csv"}


@pytest.mark.slow
async def test_every_figure_of_a_published_week_is_counted(
    run: Run, ask: Json, store: Store, shared_data: Callable[[str], Path], tmp_path: Path, long: bool
) -> None:
    published, rows = table(shared_data(SONGS)), with_durations(table(shared_data(FILE)))
    songs = catalog(rows)
    week, until = Week(rows, songs), [row for row in rows if int(row["time"]) * SECOND <= AFTERNOON]
    early = Week(until, songs)
    assert (len(rows), len(week.everything), len(songs)) == (37_673, 37_647, 2_229)
    check_published(week, published, rows)
    try_recipe(run, ask, shared_data(FILE))

    assert ask("import", "catalog", write(tmp_path, songs), "--user", LABEL)["tracks"]["new"] == 2_229
    import_plays(ask, write(tmp_path, until), new=len(early.everything), repeated=0)
    for period, form in EARLY.items():
        Check(early, MovableClock(AFTERNOON, speed=0), tmp_path, period).files(form)
    rest = [row for row in rows if int(row["time"]) * SECOND > AFTERNOON]
    import_plays(ask, write(tmp_path, rest + until[:2_000]), new=37_647 - len(early.everything), repeated=2_000)
    clock = MovableClock(EVENING, speed=0)
    async with running(store, clock) as client:
        manager = client.holding(ask("token", "create", LABEL, "--name", "radio")["token"])
        for period, form in {**LATE, **(MORE if long else {})}.items():
            check = Check(week, clock, tmp_path, period)
            ids = check.files(form)
            if period.name in {"custom", "all"}:
                await check.answers(manager, ids)
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
    tried = ask("import", "plays", str(file), "--create-missing", "--dry-run", *RECIPE)
    assert (tried["plays"]["new"], tried["plays"]["refused"]) == (37_647, 26)
    # At most, as a name that is new in two batches of a long dry run counts twice.
    assert 2_229 <= tried["tracks"]["new"] <= 2_240
    assert 476 <= tried["artists"]["new"] <= 480


def write(folder: Path, rows: Rows) -> str:
    """Write a CSV file and return its path."""
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as out:
        lines = csv.DictWriter(out, rows[0])
        lines.writeheader()
        lines.writerows(rows)
    return str(folder / "rows.csv")


def import_plays(ask: Json, file: str, *, new: int, repeated: int) -> None:
    done = ask("import", "plays", file, "--user", LABEL, *RECIPE, "--map", "heard=duration_ms")["plays"]
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
        self.days = date.fromisoformat(period.first), date.fromisoformat(period.last)

    def export(self, type_: str, form: str) -> Path:
        file = self.folder / f"{type_}.{form}"
        run_at(self.clock, "export", type_, *self.options, "--user", LABEL, "-o", str(file))
        return file

    def files(self, form: str) -> dict[str, dict[Any, int]]:
        """Compare every row of the exports and the report with a count; return the ids by kind and name."""
        ids: dict[str, dict[Any, int]] = {}
        for kind in KINDS:
            rows = export_files.rows(self.export(f"{kind}s", form))
            names = [(row["track"], row["artists"]) if kind == "track" else row[kind] for row in rows]
            ids[kind] = dict(zip(names, (row[f"{kind}_id"] for row in rows), strict=True))
            expected = self.week.exported(kind, self.period, self.clock.now())
            found = {name: {each: row[each] for each in expected[name]} for name, row in zip(names, rows, strict=True)}
            assert found == expected
        songs = {number: song for song, number in ids["track"].items()}
        days = [tuple(row.values()) for row in export_files.rows(self.export("plays", form))]
        expected_days = self.week.by_day(self.period, self.clock.now())
        assert {(day, songs[track]): counts for day, track, _, _, *counts in days} == expected_days
        assert len(days) == len(expected_days)
        self.report()
        return ids

    def report(self) -> None:
        """Compare the report as JSON and as PDF with a count of all plays."""
        data = json.loads(self.export("report", "json").read_bytes())["data"]
        plays, summary = self.week.everything, data["summary"]
        expected = columns(plays, self.period, self.clock.now())
        found = [*summary["plays"].values(), *summary["listeners"].values(), 0, 0, *summary["growth"].values()]
        assert found == list(expected.values())
        assert data["listening"] == oracle.listening(plays, self.week.lengths, *self.days)
        assert data["hours"]["hours"] == oracle.hours(plays, *self.days)
        if self.period.name == "custom":
            return  # drawing takes time
        text = printed(self.export("report", "pdf").read_bytes(), pages=1)
        assert f"Plays of all time {len(plays):,} " in text
        for label, name in (("Plays", "plays_period"), ("Listeners", "listeners_period")):
            assert f"{label} {expected[name]:,} " in text

    async def answers(self, client: Client, ids: dict[str, dict[Any, int]]) -> None:
        """Compare answers about the most played tracks, albums and artists, and some others, with a count."""
        query = f"from={self.period.first}&to={self.period.last}"
        for kind in KINDS:
            ranked = sorted(ids[kind], key=lambda name: -len(self.week.of[kind][name]))
            for name in [*ranked[:4], *ranked[9 :: len(ranked) // 3]]:
                plays = self.week.of[kind][name]
                expected = {
                    f"listening?{query}": oracle.listening(plays, self.week.lengths, *self.days),
                    f"hours?{query}": {"timezone": "UTC", "hours": oracle.hours(plays, *self.days)},
                    "milestones": oracle.milestones(plays),
                }
                if kind == "album":
                    points = oracle.release(plays, self.week.released[name], 28, date.fromisoformat(SUNDAY))
                    of = {"id": ids[kind][name], "name": name, "release_date": str(self.week.released[name])}
                    expected["release"] = {"days": 28, "releases": [of | {"points": points}]}
                for path, figures in expected.items():
                    answer = await client.get(f"{INSIGHTS}/{kind}s/{ids[kind][name]}/{path}")
                    data = answer.json["data"]
                    assert figures == {each: data[each] for each in figures}
