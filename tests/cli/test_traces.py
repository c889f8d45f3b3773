"""Security events of commands that change managers, badges and data."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, ImportRun, Track
from musicsvc.store.security import security_events
from tests.cli.conftest import Json, Run
from tests.support.bounds import Bounds

ADA, EVE = "ada@label.test", "eve@label.test"
CATALOG = "track,artist,album,external_id,album_external_id\nA,Ann,One,t1,a1\nB,Ann;Bea,One,t2,a1\nC,Cleo,Two,t3,a2\n"


@pytest.fixture
def world(run: Run, tmp_path: Path) -> Path:
    """Create the accounts 1 (Ada, who manages three imported artists) and 2 (Eve). Return the folder of the files."""
    for email in (ADA, EVE):
        run("user", "create", email)
    file = tmp_path / "songs.csv"
    file.write_text(CATALOG)
    run("import", "catalog", str(file), "--manager", ADA)
    return tmp_path


def events(store: Store, *parts: str) -> list[tuple[str, int | None, str | None]]:
    """Return the kind, account and reason of the events of these parts, such as `artist`. All are by the CLI."""
    found = store.read(lambda: security_events.find(limit=99)).result()
    wanted = [event for event in found if event.kind.partition(".")[0] in parts]
    assert {event.actor for event in wanted} <= {"cli"}
    return [(event.kind, event.account_id, event.reason) for event in wanted]


def ids(query: Any) -> list[int]:
    return [each for (each,) in query.tuples()]


def test_all_artists_of_an_account_move_with_the_external_ids_of_their_imports(
    run: Run, ask: Json, store: Store, world: Path
) -> None:
    (world / "taken.csv").write_text("track,artist,external_id\nOther,Dan,t3\n")
    run("import", "catalog", str(world / "taken.csv"), "--manager", EVE)
    assert ask("artist", "assign", "--all-of", ADA, EVE.upper()) == {"from": ADA, "to": EVE.upper(), "artists": 3}
    assert run("artist", "assign", "--all-of", ADA, EVE).stderr == f"0 artists moved from {ADA} to {EVE}.\n"

    def managers() -> dict[str, list[int]]:
        return {
            "artists": ids(Artist.select(Artist.manager).order_by(Artist.id)),
            "tracks": ids(Track.select(Track.imported_for).order_by(Track.id)),
            "albums": ids(Album.select(Album.imported_for).order_by(Album.id)),
        }

    # The third track keeps its owner, because Eve has another track with its external id.
    assert store.read(managers).result() == {"artists": [2, 2, 2, 2], "tracks": [2, 2, 1, 2], "albums": [2, 2]}
    assert events(store, "artist") == [
        ("artist.assigned", 2, "all 3 artists, from account 1"),
        ("artist.unassigned", 1, "all 3 artists, to account 2"),
    ]
    (world / "again.csv").write_text("track,artist,album,external_id,album_external_id\nA,Ann,One,t1,a1\n")
    again = ask("import", "catalog", str(world / "again.csv"), "--manager", EVE)
    assert (again["tracks"]["new"], again["albums"]["new"], again["artists"]["new"]) == (0, 0, 0)


def test_an_import_that_a_damaged_file_ends_is_an_event_with_what_it_did(
    run: Run, store: Store, world: Path, bounds: Bounds
) -> None:
    bounds(rows_a_unit=1_000)
    whole = gzip.compress("".join(["track,artist\n", *(f"S{at},Dan\n" for at in range(9_000))]).encode())
    (world / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    run("import", "catalog", str(world / "cut.csv.gz"), expect=1)
    rows, tracks = store.read(lambda: (ImportRun.get_by_id(2).rows, Track.select().count() - 3)).result()
    assert 0 < tracks == rows < 9_000
    _, _, (kind, account, reason) = events(store, "import")[1:]
    done = f"{rows:,} rows read; artists: 1 new; tracks: {tracks:,} new"
    assert (kind, account, reason) == ("import.stopped", None, f"import 2 (catalog, cut.csv.gz): {done}")
