"""The warning of artists that exist under another manager, before an import runs."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run

SONGS = "track,artist,album_artist\nA,Ann,Various\nB,Bea;Cleo,\nC,Dora,\n"
PLAYS = "track,artist,played_at\nA,Ann,1140000000\n"


@pytest.fixture
def files(tmp_path: Path, run: Run) -> tuple[str, str]:
    songs, plays = tmp_path / "songs.csv", tmp_path / "plays.csv"
    songs.write_text(SONGS)
    plays.write_text(PLAYS)
    for name in ("ann", "ben"):
        run("user", "create", f"{name}@label.test")
    return str(songs), str(plays)


def warnings(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("Warning: ")]


def test_a_catalog_warns_of_twins_before_it_runs_and_says_how_to_use_the_existing_artists(
    run: Run, files: tuple[str, str], tmp_path: Path
) -> None:
    few = tmp_path / "few.csv"
    few.write_text("track,artist\nX,Ann\nY,Dora\n")
    assert warnings(run("import", "catalog", str(few)).stderr) == []
    some = run("import", "catalog", str(few), "--user", "ben@label.test")
    assert warnings(some.stderr)[0].startswith(
        "Warning: 2 artists of this file exist under another manager too (no manager: 2)."
    )
    assert "import without --user," in warnings(some.stderr)[0]
    assert warnings(some.stderr)[0].endswith(" To undo this import, run: musicsvc import undo 2")
    one = tmp_path / "one.csv"
    one.write_text("track,artist\nZ,Bea\n")
    run("import", "catalog", str(one), "--user", "ben@label.test")
    dry = run("import", "catalog", files[0], "--user", "ann@label.test", "--dry-run").stderr
    assert "3 artists of this file exist under another manager too (ben@label.test: 3, no manager: 2)." in dry
    assert (
        "import with --user ben@label.test, or first assign them to another manager: musicsvc artist assign ID EMAIL."
        in dry
    )
    assert dry.index("Warning: ") < dry.index("3 rows read")
    assert "undo" not in dry
    assert warnings(run("import", "catalog", str(one), "--user", "ben@label.test").stderr) == []


def test_plays_warn_of_twins_in_the_catalog(run: Run, files: tuple[str, str]) -> None:
    songs, plays = files
    run("import", "catalog", songs)
    assert warnings(run("import", "plays", plays, "--listener", "me").stderr) == []
    run("import", "catalog", songs, "--user", "ann@label.test")
    done = run("import", "plays", plays, "--listener", "me", "--user", "ann@label.test")
    assert warnings(done.stderr)[0].startswith("Warning: 5 artists of the catalog exist under several managers.")
    assert done.stdout.splitlines()[-1].split() == ["plays", "0", "0", "1", "0"]
    assert warnings(run("import", "plays", plays, "--listener", "me", "--quiet").stderr) == []
