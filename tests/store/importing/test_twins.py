"""Plays whose tracks have got a second copy: they are found again, whatever track their names match now."""

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import SECOND
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions, Kind
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Artist, Play, Track
from tests.conftest import NOW
from tests.support.import_files import Import, Rows, import_file

LABEL = "label@label.test"
ROWS = 6_000
AT = NOW // SECOND - 600
SONGS = [{"artist": "Ann", "track": "Rag", "external_id": "x"}, {"artist": "Bea;Cleo", "track": "Waltz"}]


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Imports rows as a catalog or as plays."""
    store.write(lambda: users.create(LABEL, now=NOW).id).result()

    def run(rows: Rows, kind: type[Kind[Any]] = Plays, **options: Any) -> ImportSummary:
        chosen = ImportOptions(**({"listener": "me"} | options))
        return import_file(store, tmp_path / "rows.jsonl", kind(chosen), rows)

    return run


def tally(summary: ImportSummary) -> tuple[int, int, int]:
    found = summary.counts["plays"]
    return found.new, found.repeated, found.refused


@pytest.mark.slow
def test_no_play_of_real_stations_is_counted_twice_after_a_second_copy_of_its_song(
    store: Store, imported: Import, shared_data: Callable[[str], Path]
) -> None:
    text = gzip.decompress(shared_data("classic_rock_plays/classic_rock_plays.csv.gz").read_bytes()).decode()
    named = [row for row in csv.DictReader(io.StringIO(text)) if row["song"].strip() and row["artist"].strip()][:ROWS]
    songs = [{"track": row["song"], "artist": row["artist"]} for row in named]
    rows = [
        {"track": row["song"], "artist": row["artist"], "listener": row["callsign"], "played_at": row["time"]}
        | {"client_id": row["unique_id"]}
        for row in named
    ]
    imported(songs, Catalog)
    assert tally(imported(rows)) == (ROWS, 0, 0)
    tracks = store.read(Track.select().count).result()
    imported(songs, Catalog, user=LABEL)
    assert store.read(Track.select().count).result() == 2 * tracks
    for dry_run in (True, False):
        assert tally(imported(rows, user=LABEL, dry_run=dry_run)) == (0, ROWS, 0)
    assert store.read(Play.select().count).result() == ROWS


PLAYS = [
    {"artist": "Ann", "track": "Rag", "played_at": AT},
    {"external_id": "x", "played_at": AT + 60, "client_id": "1"},
    {"artist": "Cleo; Bea", "track": "Waltz", "played_at": AT + 120, "client_id": "2"},
]


def test_a_play_is_found_again_by_ids_and_names_on_a_twin(store: Store, imported: Import) -> None:
    imported(SONGS, Catalog)
    assert tally(imported(PLAYS)) == (3, 0, 0)
    imported(SONGS, Catalog, user=LABEL)
    assert tally(imported(PLAYS, user=LABEL)) == (0, 3, 0)
    later = [row | {"played_at": AT - 3600 - at} for at, row in enumerate(PLAYS)]
    assert tally(imported(later, user=LABEL)) == (3, 0, 0)
    assert sorted(store.read(lambda: [play.track for play in Play.select()]).result()) == [1, 1, 2, 3, 3, 4]


def test_a_play_is_found_again_after_its_track_and_artist_were_renamed(store: Store, imported: Import) -> None:
    imported(PLAYS[:1], create_missing=True)
    store.write(lambda: Track.update(name="Ragtime").execute() + Artist.update(name="Anna").execute()).result()
    again = imported(PLAYS[:1], create_missing=True)
    assert (tally(again), again.counts["tracks"].new) == ((0, 1, 0), 0)


def test_plays_that_an_earlier_version_imported_are_found_on_a_twin(store: Store, imported: Import) -> None:
    imported(SONGS, Catalog)
    imported(PLAYS)
    store.write(lambda: Play.update(import_id=None, names_hash=None).execute()).result()
    imported(SONGS, Catalog, user=LABEL)
    assert tally(imported(PLAYS, user=LABEL)) == (0, 3, 0)


def test_a_play_that_a_listener_reported_is_none_of_an_import(store: Store, imported: Import) -> None:
    imported(SONGS, Catalog)
    imported(PLAYS[:1])
    store.write(lambda: Play.update(import_id=None, names_hash=None, reporter=1).execute()).result()
    imported(SONGS, Catalog, user=LABEL)
    assert tally(imported(PLAYS[:1], user=LABEL)) == (1, 0, 0)


def test_a_track_named_by_its_id_is_that_track(imported: Import) -> None:
    imported(SONGS, Catalog)
    imported(SONGS, Catalog, user=LABEL)
    imported([{"track_id": 1, "played_at": AT}])
    assert tally(imported([{"track_id": 3, "played_at": AT, "artist": "Ann", "track": "Rag"}])) == (1, 0, 0)
