"""`musicsvc import catalog`, and the recipe of docs/import.md on real data."""

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.models import Artist, Track
from tests.cli.conftest import Json, Run

SONGS = "track,artist,album,bpm\nT,A,X,90\n,A,X,90\nU,B,X,fast\nV,B,,\n"
TABLES = ("artist", "album", "track", "album_artist", "track_artist", "genre", "tag", "track_genre", "track_tag")


@pytest.fixture
def songs(tmp_path: Path) -> str:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    return str(file)


def test_the_table_is_on_stdout_and_the_refused_lines_on_stderr(run: Run, songs: str) -> None:
    done = run("import", "catalog", songs)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [
        ["kind", "new", "changed", "repeated", "refused"],
        ["artists", "2", "0", "0", "0"],
        ["albums", "1", "0", "0", "0"],
        ["tracks", "2", "0", "0", "2"],
        ["genres", "0", "0", "0", "0"],
    ]
    assert done.stderr.splitlines() == [
        "line 3: track is missing",
        "line 4: bpm must be a number",
        "4 rows read, 2 of them refused.",
        "Import 1. To undo it: musicsvc import undo 1",
    ]


def test_what_was_taken_otherwise_than_written_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.csv"
    file.write_text("track,artist,album,bpm,release_date\nT,A,X,10,2001\nU,B,Y,90,2001-05\n")
    assert run("import", "catalog", str(file)).stderr.splitlines() == [
        "Release dates with only a year, taken as January 1: 1.",
        "Release dates without a day, taken as the first of the month: 1.",
        "Tempos outside 20 to 400, left out: 1.",
        "2 rows read, 0 of them refused.",
        "Import 1. To undo it: musicsvc import undo 1",
    ]


def test_json_holds_it_all_and_a_second_run_changes_nothing(ask: Json, songs: str) -> None:
    first = ask("import", "catalog", songs)
    assert first == {
        "import": 1,
        "file": songs,
        "dry_run": False,
        "rows": 4,
        "artists": {"new": 2, "changed": 0, "repeated": 0, "refused": 0},
        "albums": {"new": 1, "changed": 0, "repeated": 0, "refused": 0},
        "tracks": {"new": 2, "changed": 0, "repeated": 0, "refused": 2},
        "genres": {"new": 0, "changed": 0, "repeated": 0, "refused": 0},
        "refused": [
            {"line": 3, "reason": "track is missing"},
            {"line": 4, "reason": "bpm must be a number"},
        ],
        "notes": {},
        "unused_columns": [],
    }
    again = ask("import", "catalog", songs)
    assert again["tracks"] == {"new": 0, "changed": 0, "repeated": 2, "refused": 2}


def test_a_dry_run_says_so_and_writes_nothing(run: Run, songs: str, store: Store) -> None:
    done = run("import", "catalog", songs, "--dry-run")
    assert done.stderr.endswith("Nothing was written (--dry-run).\n")
    assert store.read(Track.select().count).result() == 0


def test_a_dry_run_in_parts_says_that_its_counts_are_upper_bounds(
    run: Run, ask: Json, songs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LONGEST_TRIAL", 0)
    monkeypatch.setattr(runner.Kind, "rows_a_unit", 1)
    printed = run("import", "catalog", songs, "--dry-run").stdout.splitlines()
    assert printed[1].split() == ["artists", "at", "most", "2", "0", "0", "0"]
    found = ask("import", "catalog", songs, "--dry-run")
    assert (found["at_most"], found["artists"]["new"]) == (True, 2)


def test_quiet_leaves_the_table_and_the_refused_lines(run: Run, songs: str) -> None:
    done = run("import", "catalog", songs, "--quiet")
    assert done.stderr.splitlines() == ["line 3: track is missing", "line 4: bpm must be a number"]
    assert done.stdout.startswith("kind")


def test_what_is_imported_is_its_managers(run: Run, songs: str, store: Store) -> None:
    run("import", "catalog", songs, "--manager", "ann@a.test", expect=1)
    made = store.write(lambda: users.create("ann@a.test", now=1).id).result()
    run("import", "catalog", songs, "--manager", "ANN@a.test")
    assert store.read(lambda: [artist.manager for artist in Artist.select()]).result() == [made, made]


@pytest.mark.parametrize(
    "pairs",
    [
        ["--map", "title=track", "--map", "by=artist", "--map", "key=", "FILE"],
        ["FILE", "--map", "title=track", "by=artist", "key="],
    ],
)
def test_columns_are_mapped_one_by_one_or_in_a_row(ask: Json, tmp_path: Path, pairs: list[str]) -> None:
    file = tmp_path / "other.csv"
    file.write_text("title,by,key,mood\nT,A,none,sad\n")
    done = ask("import", "catalog", *[str(file) if part == "FILE" else part for part in pairs])
    assert (done["tracks"]["new"], done["refused"], done["unused_columns"]) == (1, [], ["key", "mood"])


def test_wrong_usage_is_exit_2_and_says_what_there_is(run: Run, songs: str) -> None:
    for arguments in (["--map", "track"], ["--map", "track=song"], ["--format", "xml"]):
        done = run("import", "catalog", songs, *arguments, expect=2)
        assert done.stdout == ""
    assert "external_id" in run("import", "catalog", songs, "--map", "track=song", expect=2).stderr
    run("import", "catalog", expect=2)


def test_a_file_that_is_broken_or_unknown_is_one_line_and_exit_1(run: Run, tmp_path: Path) -> None:
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(SONGS.encode())[:-9])
    assert "gzip data end unexpectedly" in run("import", "catalog", str(cut), expect=1).stderr
    blank = tmp_path / "blank.csv"
    blank.write_text("name\n")
    assert "--map COLUMN=track" in run("import", "catalog", str(blank), expect=1).stderr
    run("import", "catalog", str(tmp_path / "none.csv"), expect=1)


def test_control_characters_of_a_file_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "evil.csv"
    file.write_text("track,artist,\x1b[31mred\nT,A,x\nT\x00,A,x\n")
    done = run("import", "catalog", str(file))
    assert "\x1b" not in done.stdout + done.stderr
    assert "line 3: track must not contain a NUL character" in done.stderr


def test_a_bar_is_drawn_on_a_terminal_alone_and_never_on_stdout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "[bold] songs.csv"
    file.write_text(SONGS)
    monkeypatch.setenv("TERM", "xterm")
    assert "━" not in run("import", "catalog", str(file)).stderr
    monkeypatch.setenv("FORCE_COLOR", "1")  # what Rich takes for a terminal
    done = run("import", "catalog", str(file), "--json")
    assert "[bold] songs.csv" in done.stderr
    assert "━" in done.stderr
    assert json.loads(done.stdout)["rows"] == 4
    assert "━" not in run("import", "catalog", str(file), "--quiet").stderr
    monkeypatch.setenv("TERM", "dumb")
    assert run("import", "catalog", str(file), "--json").stderr == ""


def test_parquet_goes_in_as_csv_does(ask: Json, tmp_path: Path) -> None:
    file = tmp_path / "songs.parquet"
    with duckdb.connect() as connection:
        rows_ = "SELECT 'T' AS track, ['A', 'B; C'] AS artist, DATE '1999-12-31' AS release_date, 90.4::DOUBLE AS bpm"
        connection.execute(f"COPY ({rows_} UNION ALL SELECT NULL, ['A'], NULL, NULL) TO '{file}' (FORMAT parquet)")
    done = ask("import", "catalog", str(file))
    assert (done["tracks"]["new"], done["artists"]["new"]) == (1, 2)
    assert done["refused"] == [{"line": 2, "reason": "track is missing"}]
