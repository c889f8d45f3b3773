"""One UPC is one album of a manager, whatever its rows call it."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.editing import twins
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.runner import ImportOptions, Pace
from musicsvc.store.importing.summary import ImportSummary, SharedUpc
from musicsvc.store.models import Album, AlbumArtist, Artist, Track
from tests.conftest import NOW
from tests.support.import_files import Rows, quiet
from tests.support.undoing import require_sound, undone

OWNER, OTHER = "owner@owner.test", "other@other.test"
UPC, EAN = "036000291452", "0036000291452"
TIDE: list[dict[str, object]] = [
    {"track": "One", "artist": "Ann", "album": "Tidewater", "upc": UPC},
    {"track": "Two", "artist": "Bob", "album": "Tidewater", "upc": UPC},
    {"track": "Three", "artist": "Ann", "album": "Tidewater", "upc": EAN},
    {"track": "Four", "artist": "Ann", "album": "Tidewater", "upc": UPC, "album_artist": "Ann"},
    {"track": "Five", "artist": "Cid", "album": "Tide\u00adwater", "upc": UPC},
]
Imported = Callable[..., ImportSummary]


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Imported:
    """Imports rows as a catalog, each in a transaction of its own if `rows` is 1."""
    for email in (OWNER, OTHER):
        store.write(partial(users.create, email, now=NOW)).result()

    def run(found: Rows, rows: int | None = None, **options: Any) -> ImportSummary:
        file = tmp_path / "rows.csv"
        names = dict.fromkeys(name for row in found for name in row)
        lines = [",".join(str(row.get(name, "")) for name in names) for row in found]
        file.write_text("\n".join([",".join(names), *lines]), "utf-8")
        with closing(readers.open_file(file)) as reader:
            kind = Catalog(ImportOptions(**({"user": OWNER} | options)))
            return runner.run(store, reader, kind, now=NOW, on_progress=quiet, pace=Pace(rows))

    return run


def albums(store: Store) -> list[tuple[str, str | None, tuple[str, ...], int]]:
    """Return name, UPC, artists and number of tracks of the albums."""

    def read() -> list[tuple[str, str | None, tuple[str, ...], int]]:
        credits_of = AlbumArtist.select(Artist.name).join(Artist).order_by(AlbumArtist.position)
        return [
            (
                album.name,
                album.upc,
                tuple(name for (name,) in credits_of.where(AlbumArtist.album == album.id).tuples().iterator()),
                Track.select().where(Track.album == album.id).count(),
            )
            for album in Album.select().order_by(Album.id)
        ]

    return store.read(read).result()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, 1])
def test_rows_with_one_upc_are_of_one_album_whoever_their_artist_is(
    imported: Imported, store: Store, rows: int | None
) -> None:
    tried = imported(TIDE, rows, dry_run=True)
    first = imported(TIDE, rows)

    assert albums(store) == [("Tidewater", UPC, ("Ann", "Bob", "Cid"), 5)]
    assert (tried.counts, tried.shared_upcs, first.shared_upcs) == (first.counts, [], [])
    assert not store.read(lambda: twins.find("album", 1)).result()
    again = imported(TIDE, rows).counts
    assert {kind: (each.new, each.changed, each.refused) for kind, each in again.items()} == dict.fromkeys(
        again, (0, 0, 0)
    )
    require_sound(store)
    assert first.run is not None
    assert not undone(store, first.run).kept
    assert albums(store) == []


def test_names_that_differ_for_one_upc_are_told(imported: Imported, store: Store) -> None:
    rows = [*TIDE[:2], TIDE[2] | {"album": "Tide Water"}, TIDE[3], TIDE[4] | {"album": "Tidewater", "upc": ""}]

    for summary in (imported(rows, dry_run=True), imported(rows), imported(rows)):
        assert summary.shared_upcs == [SharedUpc(UPC, (2, 4))]
        assert f"{UPC} is one UPC, 2 names: lines 2, 4." in summary.account()
        assert summary.counts["albums"].changed == 0
    assert [(name, tracks) for name, _, _, tracks in albums(store)] == [("Tidewater", 4), ("Tidewater", 1)]


def test_many_names_of_many_upcs_are_cut(imported: Imported) -> None:
    codes = [f"{number:011}" for number in range(100, 120)]
    codes = [f"{code}{-sum(int(d) * (1 if at % 2 else 3) for at, d in enumerate(code)) % 10}" for code in codes]
    rows = [{"track": f"{n}", "artist": "Ann", "album": f"A{n}", "upc": code} for code in codes for n in range(20)]

    told = [line for line in imported(rows, dry_run=True).account() if "UPC" in line]

    assert len(told) == 13  # twelve UPCs, and how many more
    assert told[0].endswith("20 names: lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 8 more.")
    assert told[-1] == "8 more UPCs of albums with several names."


@pytest.mark.parametrize("stored", [UPC, EAN])
def test_an_album_of_the_manager_with_the_upc_is_found(imported: Imported, store: Store, stored: str) -> None:
    def make(manager: int, upc: str) -> None:
        artist = Artist.create(name="Somebody", manager=manager, created_at=NOW).id
        album = Album.create(name="Old name", upc=upc, created_at=NOW).id
        AlbumArtist.create(album=album, artist=artist, position=0)

    store.write(partial(make, 2, UPC)).result()
    store.write(partial(make, 1, stored)).result()

    counts = imported(TIDE).counts["albums"]

    assert (counts.new, counts.changed) == (0, 1)
    assert albums(store) == [
        ("Old name", UPC, ("Somebody",), 0),
        ("Tidewater", stored, ("Ann", "Somebody", "Bob", "Cid"), 5),
    ]
    require_sound(store)


def test_of_several_albums_with_the_upc_each_row_finds_the_one_with_its_name(imported: Imported, store: Store) -> None:
    apart = [row | {"upc": ""} for row in TIDE]
    imported(apart)
    before = len(albums(store))
    store.write(Album.update(upc=UPC).execute).result()

    again = imported(TIDE).counts

    assert (before, len(albums(store))) == (3, 3)
    assert (again["albums"].new, again["tracks"].new) == (0, 0)


def test_an_external_id_of_the_album_counts_more_than_its_upc(imported: Imported, store: Store) -> None:
    rows = [TIDE[0] | {"album_external_id": "a"}, TIDE[1] | {"album_external_id": "b"}, TIDE[2]]

    assert imported(rows).shared_upcs == []
    assert [tracks for *_, tracks in albums(store)] == [2, 1]
