"""`musicsvc import plays` and `musicsvc plays`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from peewee import SQL

from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files import formats, histories
from musicsvc.store.models import Artist, PlayCount, Track, TrackArtist
from musicsvc.store.plays.rollups import counts
from tests.cli.conftest import Json, Run
from tests.support.bounds import Bounds
from tests.support.command import run_in_process

TABLE = """when,song,by,station
2014-06-16T12:00:00Z,Rag,Ann,KQXX
1402920000,Rag,Ann,WXYZ
1402920000,Waltz,Bea,WXYZ
soon,Rag,Ann,WXYZ
"""
PAIRS = ("--map", "when=played_at", "--map", "song=track", "by=artist", "station=listener")


@pytest.fixture
def table(tmp_path: Path, store: Store) -> str:
    def make() -> None:
        Artist.create(name="Ann", created_at=1)
        Track.create(name="Rag", duration=1, created_at=1)
        TrackArtist.create(track=1, artist=1, position=0)

    store.write(make).result()
    file = tmp_path / "plays.csv"
    file.write_text(TABLE)
    return str(file)


def test_a_recount_proves_the_figures_and_puts_them_right(run: Run, ask: Json, store: Store, table: str) -> None:
    run("import", "plays", table, *PAIRS)
    assert "2 plays of 1 day counted" in run("plays", "recount", "--check").stderr
    store.write(lambda: PlayCount.update(plays=9).where(SQL(counts.KIND) == 1).execute()).result()
    line = [sys.executable, "-m", "musicsvc", "plays", "recount", "--check"]
    wrong = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert [re.split(" {2,}", row.strip()) for row in wrong.stdout.splitlines()] == [
        ["row", "stored plays / listeners", "counted"],
        ["track 1, 2014-06-16", "9 / 2", "2 / 2"],
        ["track 1, all time", "2 / 0", "9 / 0"],
    ]
    assert "To repair these counts, run the command without --check." in wrong.stderr
    report = ask("plays", "recount")
    assert (report["differing"], report["mended"], report["kept_from"]) == (1, True, None)
    assert report["differences"] == [{"row": "track 1, 2014-06-16", "stored": [9, 2], "counted": [2, 2]}]
    assert ask("plays", "recount", "--check")["differing"] == 0


def test_differences_beyond_the_first_ones_are_counted(run: Run, store: Store, table: str, bounds: Bounds) -> None:
    run("import", "plays", table, *PAIRS)
    store.write(lambda: PlayCount.update(plays=9).execute()).result()
    bounds(differences_shown=1)
    found = run_in_process(["plays", "recount", "--check"])
    differing = json.loads(run_in_process(["plays", "recount", "--check", "--json"]).stdout)["differing"]
    assert differing > 1
    assert len(found.stdout.splitlines()) == 2
    assert f"\n… and {differing - 1} more.\n" in f"\n{found.stderr}"


def test_every_format_of_a_history_can_be_named_and_is_in_the_help(run: Run, tmp_path: Path) -> None:
    names = [*formats.FORMATS, *histories.FORMATS]
    listed = " ".join(run("import", "plays", "--help").stdout.split()).replace("- ", "-")
    assert f"{', '.join(names)}." in listed
    for name in names:
        done = run_in_process(["import", "plays", str(tmp_path / "nothing"), "--format", name])
        assert "Invalid value for '--format'" not in done.stderr, name
    assert "Invalid value for '--format'" in run("import", "plays", "x.csv", "--format", "mp3", expect=2).stderr
