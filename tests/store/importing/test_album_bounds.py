"""Rows that would bring an album beyond 1,000 tracks or 768 KiB are refused, the others are imported."""

import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from musicsvc.server.shapes import catalog as shapes
from musicsvc.store.accounts import users
from musicsvc.store.catalog import albums
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Artist, Track
from tests.support import large_albums
from tests.support.bounds import Bounds
from tests.support.import_files import Import, Rows, import_file

NOBODY = "artist is missing"
FULL = "an album holds at most 1,000 tracks: Vexations"
LARGE = "an album with its tracks takes at most 768 KiB as JSON: Album 1"


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Import the rows after a dry run, and compare the two results."""
    store.write(lambda: users.create("ann@label.test", api_access=True, now=1)).result()
    file = tmp_path / "rows.jsonl"

    def run(rows: Rows, **options: Any) -> ImportSummary:
        kinds = [Catalog(ImportOptions(user="ann@label.test", dry_run=dry_run, **options)) for dry_run in (True, False)]
        dry, real = (import_file(store, file, kind, rows) for kind in kinds)
        dry.dry_run = False
        assert dry == real
        return real

    return run


def reasons(summary: ImportSummary) -> dict[int, str]:
    return {refusal.line: refusal.reason for refusal in summary.refused}


def of_satie(name: str, **more: object) -> dict[str, object]:
    """A row for album 1 of tests/support/large_albums.py."""
    return {"track": name, "artist": "Erik Satie", "album": "Album 1"} | more


def in_album(store: Store, name: str) -> int:
    """Return the number of tracks of the albums with this name."""
    query = Track.select().join(Album).where(Album.name == name)
    return store.read(query.count).result()


@pytest.mark.slow
def test_rows_beyond_1000_tracks_are_refused_by_line_each_time(store: Store, imported: Import) -> None:
    rows = [
        {"external_id": f"id {number}", "track": f"Track {number}", "artist": "Erik Satie", "album": "Vexations"}
        for number in range(1, 1004)
    ]
    rows.insert(700, rows[10])  # repeated, and there already
    rows[-1]["release_date"] = "1893"
    rows += [{"track": "Nobody's"}, {"track": "Another", "artist": "Erik Satie"}]
    for new in (1001, 0):
        summary = imported(rows)
        assert list(reasons(summary).items()) == [*((line, FULL) for line in (1002, 1003, 1004)), (1005, NOBODY)]
        assert summary.notes["month_padded"] == 0
        assert summary.counts["albums"].refused == 3
        assert summary.counts["tracks"].new == new
        assert in_album(store, "Vexations") == 1000
    # A row that says more of a track that is there already has room; one that moves a track away makes some.
    again = imported([rows[5] | {"description": "Slowly"}, rows[6] | {"album": "Other"}, rows[-3]])
    assert (reasons(again), again.counts["tracks"].changed, again.counts["tracks"].new) == ({}, 2, 1)
    assert (in_album(store, "Vexations"), in_album(store, "Other")) == (1000, 1)


def test_rows_that_would_make_an_album_too_large_are_refused(store: Store, imported: Import) -> None:
    large_albums.fill(store, albums=2, tracks=large_albums.NEARLY_FULL)
    summary = imported(
        [
            of_satie("Small"),
            of_satie("Large", description=large_albums.LONGEST),
            of_satie("Small too", image=f"https://images.example.test/{'x' * 100}.jpg"),
            {"track": "Elsewhere", "artist": "Erik Satie", "album": "Other", "description": large_albums.LONGEST},
            of_satie("By others", artist=";".join(["Erik Satie", *(f"{number}{'é' * 100}" for number in range(20))])),
            of_satie("Small as well", description="quietly"),
        ]
    )
    # An image of the album itself is shown by all its tracks: each of the 15 counts it.
    assert reasons(summary) == {2: LARGE, 5: LARGE}
    assert in_album(store, "Album 1") == large_albums.NEARLY_FULL + 3


def test_an_album_is_kept_from_growing_by_its_own_fields_too(store: Store, imported: Import) -> None:
    """Tracks without an image show that of their album."""
    large_albums.fill(store, albums=1, tracks=900, description="x" * 650)
    rows = [of_satie(f"Track {number}") for number in range(1, 31)]
    assert reasons(imported(rows)) == {}
    image = {"image": f"https://images.example.test/{'y' * 60}.jpg"}
    # A track that keeps what its first row says, and another album that the second row names with an image.
    both = [of_satie("Both", external_id="both", album=album) | image for album in ("Other", "Album 1")]
    assert reasons(imported(both)) == {2: LARGE}
    images = {"Other": image["image"], "Album 1": None}
    assert store.read(lambda: dict(Album.select(Album.name, Album.image).tuples().iterator())).result() == images
    assert reasons(imported([row | image for row in rows])) == dict.fromkeys(range(1, 31), LARGE)
    assert store.read(lambda: dict(Album.select(Album.name, Album.image).tuples().iterator())).result() == images


def test_an_album_that_is_too_large_already_is_left_as_it_is(store: Store, imported: Import) -> None:
    large_albums.fill(store, albums=1, tracks=large_albums.NEARLY_FULL + 7)
    kept = of_satie("Track 1")
    summary = imported([kept, of_satie("New"), kept | {"bpm": 90}])
    assert reasons(summary) == {2: LARGE}
    assert in_album(store, "Album 1") == large_albums.NEARLY_FULL + 7


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_whatever_is_imported_albums_stay_within_their_bounds(
    store: Store, imported: Import, number: int, bounds: Bounds, seed: int
) -> None:
    bounds(most_tracks=6, largest_album=3000, rows_a_unit=9)
    chance = random.Random(f"{seed}:{number}")
    for _ in range(2):
        imported([some_row(chance) for _ in range(60)])
        rows = store.read(lambda: albums.with_contents(albums.list_all(Page(size=100)).rows)).result()
        assert len(rows) > 3
        assert max(len(row.tracks) for row in rows) <= 6
        assert 2000 < max(len(orjson.dumps(shapes.album_full(row))) for row in rows) <= 3000
        assert store.read(Artist.select().count).result() > 3


def some_row(chance: random.Random) -> dict[str, object]:
    """Draw a row from few tracks, albums and artists, so that rows concern the same ones."""
    row: dict[str, object] = {
        "track": f"Track {chance.randrange(20)}",
        "artist": ";".join(f"Artist {number}" for number in chance.sample(range(6), chance.choice((1, 1, 2, 3)))),
    }
    album = {"album": f"Album {chance.randrange(4)}"}
    choices = {
        "external_id": f"track {chance.randrange(25)}",
        "description": chance.choice(("\x01", "é", "x")) * chance.randrange(200),
        "image": f"https://images.example.test/{'i' * chance.randrange(90)}.jpg",
        "release_date": "1893-05-18",
        "duration_ms": chance.randrange(10_000_000),
    }
    row |= {name: value for name, value in choices.items() if chance.random() < 0.5}
    if chance.random() < 0.8:
        row |= album | ({"album_external_id": album["album"]} if chance.random() < 0.5 else {})
    return row
