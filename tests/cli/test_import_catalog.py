"""`musicsvc import catalog`, and the recipe of docs/import.md on real data."""

import csv
import gzip
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.store import Store
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
    ]


def test_what_was_taken_otherwise_than_written_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.csv"
    file.write_text("track,artist,album,bpm,release_date\nT,A,X,10,2001\nU,B,Y,90,2001-05\n")
    assert run("import", "catalog", str(file)).stderr.splitlines() == [
        "Release dates with only a year, taken as January 1: 1.",
        "Release dates without a day, taken as the first of the month: 1.",
        "Tempos outside 20 to 400, left out: 1.",
        "2 rows read, 0 of them refused.",
    ]


def test_json_holds_it_all_and_a_second_run_changes_nothing(ask: Json, songs: str) -> None:
    first = ask("import", "catalog", songs)
    assert first == {
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


def recipe(file: Path) -> list[str]:
    """The command of docs/import.md, with this file."""
    document = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text("utf-8")
    (block,) = re.findall(r"```sh\n(musicsvc import catalog spotify_songs.*?)```", document, re.DOTALL)
    return [
        str(file) if part == "spotify_songs.csv.gz" else part for part in shlex.split(block.replace("\\\n", " "))[1:]
    ]


# A process counts the memory of the one that it was forked from as its own, hence a small one in between.
MEASURING = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, code, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss // 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(code))
"""


def measured(arguments: list[str]) -> tuple[Any, float, int]:
    """Return the JSON that a command prints, its seconds and its peak memory in MB."""
    began = time.monotonic()
    line = [sys.executable, "-S", "-c", MEASURING, sys.executable, "-m", "musicsvc", *arguments, "--json"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=True)
    return json.loads(done.stdout), time.monotonic() - began, int(done.stderr.split()[-1])


def rows(store: Store) -> list[Any]:
    return store.read(
        lambda: [
            sorted(map(tuple, current().execute_sql(f"SELECT * FROM {table}").fetchall()), key=str) for table in TABLES
        ]
    ).result()


def counted(file: str) -> dict[str, int]:
    """Return the number of rows that each table must have, counted from the file directly."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        songs = list(csv.DictReader(lines))

    def pairs(owner: str, column: str) -> int:
        return len({(song[owner], part) for song in songs for part in song[column].split(";")})

    return {
        "artist": len({name for song in songs for name in song["track_artist"].split(";")}),
        "album": len({song["track_album_id"] for song in songs}),
        "track": len({song["track_id"] for song in songs}),
        "album_artist": pairs("track_album_id", "track_artist"),
        "track_artist": pairs("track_id", "track_artist"),
        "genre": len({song["playlist_genre"] for song in songs}),
        "tag": len({song["playlist_subgenre"] for song in songs}),
        "track_genre": pairs("track_id", "playlist_genre"),
        "track_tag": pairs("track_id", "playlist_subgenre"),
    }


@pytest.mark.usefixtures("run")
def test_the_recipe_takes_all_of_spotify_songs_and_a_second_run_changes_nothing(
    store: Store, shared_data: Callable[[str], Path]
) -> None:
    command = recipe(shared_data("spotify_songs/spotify_songs.csv.gz"))
    first, seconds, megabytes = measured(command)
    assert seconds < 60
    assert megabytes < 300
    assert (first["rows"], first["refused"]) == (32_833, [])
    assert [first[kind]["new"] for kind in ("tracks", "albums", "artists", "genres")] == [28_356, 22_545, 10_693, 6]
    assert first["notes"] == {"month_padded": 1855, "day_padded": 31, "bpm_dropped": 1}
    before = rows(store)
    assert dict(zip(TABLES, map(len, before), strict=True)) == counted(command[2])
    again, _, _ = measured(command)
    assert all(again[kind]["new"] == again[kind]["changed"] == 0 for kind in ("tracks", "albums", "artists", "genres"))
    assert rows(store) == before


@pytest.mark.usefixtures("run")
def test_with_blank_na_the_nameless_rows_of_spotify_songs_are_refused_and_listed(
    shared_data: Callable[[str], Path],
) -> None:
    command = recipe(shared_data("spotify_songs/spotify_songs.csv.gz"))
    done, _, megabytes = measured([*command, "--blank", "NA", "--dry-run"])
    assert megabytes < 300
    assert [refused["line"] for refused in done["refused"]] == [8153, 9284, 9285, 19570, 19813]
    assert [done[kind]["new"] for kind in ("tracks", "albums", "artists")] == [28_352, 22_543, 10_692]
