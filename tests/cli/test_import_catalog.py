"""`musicsvc import catalog`, and the recipe of docs/import.md on real data."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Json, Run
from tests.support.bounds import Bounds
from tests.support.workbooks import write_xlsx

SONGS = "track,artist,album,bpm\nT,A,X,90\n,A,X,90\nU,B,X,fast\nV,B,,\n"


@pytest.fixture
def songs(tmp_path: Path) -> str:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    return str(file)


def test_a_dry_run_in_parts_says_that_its_counts_are_upper_bounds(
    run: Run, ask: Json, songs: str, bounds: Bounds
) -> None:
    bounds(longest_trial=0, rows_a_unit=1)
    printed = run("import", "catalog", songs, "--dry-run").stdout.splitlines()
    assert printed[1].split() == ["artists", "at", "most", "2", "0", "0", "0"]
    found = ask("import", "catalog", songs, "--dry-run")
    assert (found["at_most"], found["artists"]["new"]) == (True, 2)


def test_an_import_says_which_of_several_sheets_was_read(run: Run, ask: Json, tmp_path: Path) -> None:
    rows = [("Track", "Artist"), ("T", "A")]
    file = str(write_xlsx(tmp_path / "songs.xlsx", rows, Old=[*rows, ("U", "A")]))
    read = "Read the sheet Sheet, not Old."
    printed = run("import", "catalog", file, "--dry-run").stderr.splitlines()
    assert printed[0] == f"{read} To read another one, add --sheet NAME."
    assert ask("import", "catalog", file, "--dry-run")["remark"] == read
    found = ask("import", "catalog", file, "--sheet", "Old", "--dry-run")
    assert (found["rows"], "remark" in found) == (2, False)


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
