"""`musicsvc plays recount --from`: figures from dumped plays, equal to those of the service to the last listener."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.cli.recounting import NOT_PLAYS
from musicsvc.clock import DAY, MovableClock, parse
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.subjects import ARTIST
from musicsvc.store.recounting.engines import CLICKHOUSE, SPARK
from tests.cli.conftest import Json, Run
from tests.conftest import NOW
from tests.support import databases, dumps
from tests.support.command import run_at, run_in_process
from tests.support.dumps import World
from tests.support.listening_world import record, two_years
from tests.support.oracle import PlayOf

ROOT = Path(__file__).resolve().parents[2]
LINE = ("plays", "recount", "--from")
KINDS = ("track", "album", "artist")


@pytest.fixture(scope="module")
def prefilled(
    template: databases.Template, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[databases.Filled[World]]:
    folder = tmp_path_factory.mktemp("recounting")
    with databases.filled(template, folder, partial(dumps.create, folder=folder / "dum`ped")) as filled:
        yield filled


@pytest.fixture
def world(prefilled: databases.Filled[World]) -> World:
    return prefilled.made


def test_a_backtick_in_the_path_of_a_dump_does_not_end_its_name_in_sql() -> None:
    folder, one, two = Path("/label`s/dump"), "plays/a.parquet", "plays/b.parquet"
    assert SPARK.source(folder, [one]) == f"parquet.`/label``s/dump/{one}`"
    assert SPARK.source(folder, [one, two]) == f"parquet.`/label``s/dump/{{{one},{two}}}`"
    assert CLICKHOUSE.source(folder, [one]) == f"file('/label`s/dump/{one}', Parquet)"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_figure_of_any_window_differs(ask: Json, world: World, kind: str, long: bool) -> None:
    """With `--long`, those of each kind in each window; else each window is one of one kind."""
    for period in dumps.PERIODS if long else dumps.PERIODS[KINDS.index(kind) :: len(KINDS)]:
        check(ask, world, kind, period)
    if long or kind == "album":
        check(ask, world, kind, "--since", "2025-12-31", "--until", "2026-02-28")


def check(ask: Json, world: World, kind: str, *period: str) -> None:
    days = period if len(period) > 1 else ("--period", *period)
    found = ask(*LINE, str(world.folder), "--kind", kind, *days, "--compare")
    assert found == {"subjects": found["subjects"], "differences": [], "not_compared": []}
    assert found["subjects"] > 4


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_the_commands_of_the_documentation_run(
    prefilled: databases.Filled[World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prefilled.made.made.artists[0] == 1
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^musicsvc (.*)$", (ROOT / "docs/scale.md").read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 4
    clock = MovableClock(parse("2026-11-20T10:00:00Z"), speed=0)
    for line in lines:
        run_at(clock, *shlex.split(line, comments=True))


@pytest.mark.slow
def test_the_figures_are_those_counted_by_hand(store: Store, ask: Json, tmp_path: Path) -> None:
    made = store.write(partial(two_years, NOW)).result()
    folder = dumps.dump(store, tmp_path / "dumped")
    for kind, numbers in (("track", made.tracks), ("album", made.albums), ("artist", made.artists)):
        found = ask(*LINE, str(folder), "--kind", kind, "--period", "90-days")
        assert [each["id"] for each in found] == sorted(numbers)
        for each in found:
            past: Any = {"album": made.past.album, "artist": partial(made.past.artist, followers=0)}
            count = past.get(kind, partial(made.past.figures, kind))
            expected = count(each["id"], "90-days", NOW)
            assert {key: each[key] for key in expected.keys() - NOT_PLAYS} == {
                key: value for key, value in expected.items() if key not in NOT_PLAYS
            }
            chart = made.past.chart(kind, each["id"], "90d", NOW)
            assert [(point["date"], point["plays"], point["listeners"]) for point in each["charts"]["points"]] == [
                (point["date"], point["plays"], point["listeners"]) for point in chart["points"]
            ]


@pytest.mark.slow
def test_one_id_is_one_json_value_with_the_keys_of_the_api(ask: Json, world: World) -> None:
    artist = str(world.made.artists[0])
    found = ask(*LINE, str(world.folder), "--kind", "artist", "--id", artist, "--period", "2026-02")
    served = ask("insights", "show", "artist", artist, "--period", "2026-02")
    assert found.pop("charts")["totals"] == {
        "plays": found["plays"]["period"],
        "listeners": found["listeners"]["unique"],
    }
    assert {*served} - {*found} == {"engagement", "followers", "milestones"}
    assert found == {key: served[key] for key in found}


def test_figures_are_printed_as_a_table(run: Run, world: World) -> None:
    page = run(*LINE, str(world.folder), "--kind", "album", "--period", "2025").stdout
    assert page.splitlines()[0].split() == [
        "id",
        "name",
        "plays",
        "growth",
        "listeners",
        "new",
        "skips",
        "heard",
        "all",
        "time",
    ]
    assert f"{world.made.albums[0]}" in page
    assert "Album 0" in page


def test_no_plays_were_deleted_before_the_first_day(run: Run, world: World) -> None:
    assert run(*LINE, str(world.folder), "--kind", "album", "--period", "1969").stderr == ""


@pytest.mark.usefixtures("run")
def test_each_figure_that_differs_is_named(store: Store, world: World) -> None:
    artist = world.made.artists[1]
    key = counts.key(counts.DAY, NOW // DAY - 3, ARTIST, artist)
    store.write(partial(sql.run, "UPDATE play_count SET plays = plays + 1 WHERE key = ?", key)).result()

    line = (*LINE, str(world.folder), "--kind", "artist", "--period", "7-days", "--compare")
    done = run_in_process(line)
    assert done.returncode == 1
    named = [row.split() for row in done.stdout.splitlines()[1:]]
    assert {(row[0], row[1]) for row in named} == {("artist", str(artist))}
    assert [row[2] for row in named] == [
        "plays.period",
        "growth.plays_change",
        "listening.plays_per_listener",
        f"charts.points.{to_date(NOW // DAY - 3)}.plays",
        "charts.totals.plays",
    ]
    assert "5 differences in the figures of" in done.stderr


@pytest.mark.slow
def test_figures_with_plays_since_the_dump_are_not_compared(ask: Json, store: Store, world: World) -> None:
    store.write(partial(record, [PlayOf(world.made.tracks[0], NOW - 2 * DAY, "since the dump")])).result()
    line = (*LINE, str(world.folder), "--kind", "track", "--compare", "--period")
    for period, left_out in (
        ("7-days", "of all time, growth, of the period"),
        ("2025-Q4", "of all time"),
        ("all", "of all time, growth, of the period"),
    ):
        found = ask(*line, period)
        assert found["differences"] == []
        assert found["not_compared"] == [
            f"Since the dump (2026-03-01T12:00:00.000000Z), plays of 1 day changed: {to_date(NOW // DAY - 2)}.",
            f"Figures that include such days were not compared: {left_out}.",
        ]


@pytest.mark.slow
@pytest.mark.usefixtures("run")
def test_what_only_the_dump_or_only_the_database_has_is_a_difference(store: Store, world: World) -> None:
    new = store.write(lambda: int(Artist.create(name="New", created_at=NOW).id)).result()
    gone = world.made.albums[1]
    store.write(Album.delete().where(Album.id == gone).execute).result()
    for kind, number, served, recounted in (("artist", new, "New", None), ("album", gone, None, "Album 1")):
        done = run_in_process((*LINE, str(world.folder), "--kind", kind, "--compare", "--json"))
        assert done.returncode == 1
        expected = {"kind": kind, "id": number, "figure": "name", "served": served, "recounted": recounted}
        assert expected in json.loads(done.stdout)["differences"]


def test_a_recount_needs_no_database(bare: Run, world: World) -> None:
    done = bare(*LINE, str(world.folder), "--kind", "track", "--json")
    assert len(json.loads(done.stdout)) == done.stdout.count('"kind"') > 4


def test_an_unknown_id_is_an_error(run: Run, world: World) -> None:
    done = run(*LINE, str(world.folder), "--kind", "track", "--id", "999", "--json", expect=1)
    assert "There is no track 999" in done.stderr


def test_a_deleted_track_is_no_subject_though_its_plays_count(ask: Json, run: Run, store: Store, world: World) -> None:
    gone = store.read(lambda: sql.fetch("SELECT track_id FROM deleted_track WHERE kind = 1")).result()[0][0]
    assert gone not in [each["id"] for each in ask(*LINE, str(world.folder), "--kind", "track")]
    run(*LINE, str(world.folder), "--kind", "track", "--id", str(gone), expect=1)


@pytest.mark.parametrize("damage", ["changed", "missing", "newer", "rows", "no manifest", "other json", "outside"])
def test_a_damaged_dump_is_one_line(run: Run, world: World, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(world.folder, folder)
    manifest = folder / "manifest.json"
    data = json.loads(manifest.read_bytes())
    first = folder / data["files"][0]["path"]
    if damage == "changed":
        first.write_bytes(first.read_bytes() + b"x")
    elif damage == "missing":
        first.unlink()
    elif damage == "newer":
        data["schema_version"] = 2
    elif damage == "rows":
        data["files"][0]["rows"] += 1
    elif damage == "other json":
        data = {"files": 1}
    elif damage == "outside":
        data["files"][0]["path"] = "plays/day=2026-01-01/../../../other.parquet"
    manifest.write_text(json.dumps(data))
    if damage == "no manifest":
        manifest.unlink()
    message = {
        "changed": f"{first} is not the file that was dumped: its SHA-256 is",
        "missing": f"{first} cannot be read: No such file or directory.",
        "newer": "has schema_version 2, and this version reads 1.",
        "rows": "rows; the manifest states",
        "no manifest": f"{manifest} cannot be read: No such file or directory.",
    }.get(damage, f"{manifest} is not the manifest of a dump.")
    assert message in run(*LINE, str(folder), "--kind", "track", expect=1).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--kind", "artist"), "--kind: Needs --from DIR."),
        (("--engine", "duckdb"), "--engine: Needs --from DIR."),
        (("--compare",), "--compare: Needs --from DIR."),
        (("--from", "."), "--kind: Say of what: track, album or artist."),
        (("--from", ".", "--check"), "--check: Use --compare with --from."),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(run: Run, options: tuple[str, ...], message: str) -> None:
    assert message in " ".join(run("plays", "recount", *options, expect=2).stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "2026-01-01"), "Use --since and --until together."),
        (("--since", "2026-01-01", "--until", "2026-03-02"), "Must not be after today, 2026-03-01"),
        (("--period", "2026-13"), "is not a period"),
    ],
)
def test_periods_are_as_of_the_time_of_the_dump(run: Run, world: World, options: tuple[str, ...], message: str) -> None:
    line = (*LINE, str(world.folder), "--kind", "track", *options)
    assert message in " ".join(run(*line, expect=2).stderr.replace("│", " ").split())
