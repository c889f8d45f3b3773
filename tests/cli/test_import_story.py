"""A label imports a catalog and two months of plays, a file twice and a wrong file once, and undoes it."""

from __future__ import annotations

import csv
import json
import signal
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from musicsvc.store.models import ImportRun, Track
from tests.support.program import Program, until

if TYPE_CHECKING:
    from pathlib import Path

    from musicsvc.store.engine.store import Store
    from tests.cli.conftest import Json, Run

LABEL = "label@label.test"
TODAY = datetime.now(UTC).date()  # noqa: TID251 - the program's clock is real
MONTH = (TODAY.replace(day=1) - timedelta(days=1)).replace(day=1)  # the last whole month
BEFORE = (MONTH - timedelta(days=1)).replace(day=1)
PERIODS = (("--period", f"{MONTH:%Y-%m}"), ("--period", "all"))


def write(file: Path, rows: list[dict[str, object]]) -> str:
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, rows[0])
        table.writeheader()
        table.writerows(rows)
    return str(file)


def catalog_rows() -> list[dict[str, object]]:
    """9 tracks of three artists on two albums, all with ISRCs, one of them a duet."""
    return [
        {
            "isrc": f"GB-LBL-24-{number:05}",
            "track": f"Song {number}",
            "artist": ("Ann", "Bea", "Ann;Cleo")[number % 3],
            "album": f"Album {number % 2}",
            "album_artist": "Ann",
            "upc": ("036000291452", "4006381333931")[number % 2],
            "label": "Blue",
            "track_number": 1 + number // 2,
            "duration_ms": 100_000 + number * 7_000,
            "genre": "jazz",
        }
        for number in range(9)
    ]


def play_rows(names: list[str], count: int, *, every: int, listeners: int) -> list[dict[str, object]]:
    """Plays from the first of the earlier month on; the first songs are played most."""
    start = datetime(BEFORE.year, BEFORE.month, 1, tzinfo=UTC)
    return [
        {
            "isrc": f"GB-LBL-24-{at * at % 9:05}" if not names else "",
            "artist": "Ann" if names else "",
            "track": names[at % len(names)] if names else "",
            "played_at": (start + timedelta(minutes=every * at + len(names))).isoformat(),
            "listener": f"listener {at * 7 % listeners}",
            "duration_ms": 20_000 + at * 997 % 120_000,
        }
        for at in range(count)
    ]


@pytest.fixture
def figures(ask: Json, run: Run) -> Any:
    """Return all figures, lists and search results of the label as JSON."""

    def read() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for period in PERIODS:
            for kind, ids in (("track", (1, 2, 8)), ("album", (1, 2)), ("artist", (1, 2))):
                for number in ids:
                    found[f"{kind} {number} {period[1]}"] = ask("insights", "show", kind, str(number), *period)
            for kind in ("tracks", "albums", "artists", "plays"):
                done = run("export", kind, *period, "--format", "csv", "--user", LABEL)
                found[f"{kind} {period[1]}"] = done.stdout
        return found

    return read


def test_what_was_imported_by_mistake_is_undone_while_the_server_runs(
    run: Run, ask: Json, figures: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_LIMITS__ENABLED", "false")
    run("user", "create", LABEL)
    run("access", "grant", LABEL)
    token = ask("token", "create", LABEL, "--name", "label")["token"]
    songs = write(tmp_path / "songs.csv", catalog_rows())
    plays = write(tmp_path / "plays.csv", play_rows([], 1500, every=53, listeners=40))
    wrong = write(tmp_path / "wrong.csv", play_rows(["Song 0", "Song 3", "Elsewhere"], 300, every=211, listeners=90))
    catalog = ask("import", "catalog", songs, "--user", LABEL)
    assert (catalog["import"], catalog["tracks"]["new"], catalog["refused"]) == (1, 9, [])
    assert ask("import", "plays", plays, "--user", LABEL)["plays"]["new"] == 1500
    before = figures()
    assert before["album 1 all"]["plays"]["total"] > before["album 2 all"]["plays"]["total"] > 0

    with Program(tmp_path, "serve", "--port", "0") as program:
        paths = ("genres", "albums", "artists/1/tracks", "producer-intelligence/insights/artists/1")

        def answers() -> list[Any]:
            headers = {"Authorization": f"Bearer {token}"}
            requests = [urllib.request.Request(f"{root}/api/v1/{path}", headers=headers) for path in paths]  # noqa: S310 - our server
            return [json.loads(urllib.request.urlopen(each).read()) for each in requests]  # noqa: S310 - our server

        root = program.root
        served = answers()
        twice = ask("import", "plays", plays, "--user", LABEL)
        assert (twice["plays"]["new"], twice["plays"]["repeated"]) == (0, 1500)
        mistake = ask("import", "plays", wrong, "--user", LABEL, "--create-missing")
        assert (mistake["plays"]["new"], mistake["tracks"]["new"]) == (300, 1)
        assert figures() != before
        until(lambda: answers()[2:] != served[2:])
        for number in (mistake["import"], twice["import"]):
            assert ask("import", "undo", str(number))["import"]["state"] == "undone"
        assert figures() == before
        until(lambda: answers() == served)  # counters in lists may be 5 seconds old

    assert run("plays", "recount", "--check").stderr.endswith("No differences.\n")
    assert run("db", "check").stderr.endswith("No problems found.\n")
    states = [(row["id"], row["kind"], row["file"], row["user"], row["state"]) for row in ask("import", "list")]
    assert states == [
        (4, "plays", "wrong.csv", LABEL, "undone"),
        (3, "plays", "plays.csv", LABEL, "undone"),
        (2, "plays", "plays.csv", LABEL, "done"),
        (1, "catalog", "songs.csv", LABEL, "done"),
    ]
    kept = ask("import", "undo", "1")
    assert (kept["import"]["state"], kept["tracks"]) == ("partly", {"taken_back": 5, "kept": 4})
    assert kept["kept"][0] == {"kind": "tracks", "reason": "plays", "ids": [1, 2, 5, 8]}
    assert ask("import", "undo", "2")["plays"] == {"taken_back": 1500, "kept": 0}
    assert ask("import", "undo", "1")["import"]["state"] == "undone"
    assert "undone on" in run("import", "undo", "1", expect=1).stderr
    assert "There is no import 99" in run("import", "undo", "99", expect=1).stderr


def test_an_undo_that_is_killed_is_continued_by_the_next(run: Run, ask: Json, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("track,artist,genre\n" + "".join(f"S{at},A{at % 97},g{at % 7}\n" for at in range(6_000)))
    assert ask("import", "catalog", str(file))["tracks"]["new"] == 6_000

    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "undo", "1") as program:
        until(lambda: tracks() < 6_000)
        program.end(signal.SIGKILL)
    assert 0 < tracks() < 6_000
    assert store.read(lambda: ImportRun.get_by_id(1).state).result() == "undoing"
    assert run("db", "check").stderr.endswith("No problems found.\n")
    assert ask("import", "undo", "1")["import"]["state"] == "undone"
    assert [ask("import", "list")[0][name] for name in ("state", "rows")] == ["undone", 6_000]
    assert tracks() == 0
    assert run("db", "check").stderr.endswith("No problems found.\n")
