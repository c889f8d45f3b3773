"""The name of an artist that was split means its parts: a repeated import changes nothing, new rows are for these."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.editing import splitting
from musicsvc.store.editing.splitting import Split
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Artist, Play, Track
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.import_files import Rows, import_file
from tests.support.merges import contents, merge
from tests.support.undoing import AT, DAY, LABEL, OPTIONS, require_sound, undone

Importer = Callable[..., ImportSummary]
DUO = "Ann & Bob"
CATALOG: Rows = [
    {"track": "Trio", "artist": "Ann", "album": "Solo"},
    {"track": "Duo", "artist": DUO, "album": "Both", "external_id": "d", "isrc": "GBAYE6800011"},
    {"track": "Trio", "artist": f"Cy;{DUO}", "album": "Both", "album_artist": DUO},
    {"track": "Quartet", "artist": f"{DUO};Ann", "genre": "lied"},
]
PLAYS: Rows = [
    {"track": "Duo", "artist": DUO, "played_at": AT},
    {"track": "Trio", "artist": f"Cy;{DUO}", "played_at": AT - DAY, "client_id": "a"},
    {"track": "Quartet", "artist": DUO, "played_at": AT - 2 * DAY},
    {"track": "Made", "artist": DUO, "played_at": AT - 2 * DAY},
]
LISTS: Rows = [{"playlist": "Mix", "artist": f"{DUO};Ann", "track": "Quartet"}]
FILES = {"catalog": CATALOG, "plays": PLAYS, "playlists": LISTS}


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Importer:
    store.write(lambda: users.create(LABEL, now=NOW).id).result()

    def run(kind: str, rows: Rows, **more: Any) -> ImportSummary:
        return import_file(store, tmp_path / f"{kind}.jsonl", OPTIONS[kind](), rows, **more)

    return run


def split(store: Store, name: str, *into: str) -> Split:
    def unit() -> Split:
        return splitting.split(Artist.get(Artist.name == name).id, into, now=NOW)

    return store.write(unit).result()


def credited(store: Store) -> dict[str, list[str]]:
    """Return the artists of each track and album by its name."""

    def read() -> dict[str, list[str]]:
        found = {}
        for table, load in ((Track, artists.of_tracks), (Album, artists.of_albums)):
            for row in table.select().order_by(table.id):
                found[row.name] = [artist.name for artist in load([row.id]).get(row.id, ())]
        return found

    return store.read(read).result()


def new(summary: ImportSummary) -> dict[str, tuple[int, int, int]]:
    return {kind: (each.new, each.changed, each.refused) for kind, each in summary.counts.items()}


@pytest.mark.slow
def test_files_that_are_imported_again_after_a_split_find_all_and_change_nothing(
    store: Store, imported: Importer
) -> None:
    runs = [imported(kind, rows).run for kind, rows in FILES.items()]
    split(store, DUO, "Bob", "Ann")
    assert credited(store) == {
        "Trio": ["Cy", "Bob", "Ann"],
        "Duo": ["Bob", "Ann"],
        "Quartet": ["Bob", "Ann"],
        "Made": ["Bob", "Ann"],
        "Solo": ["Ann"],
        "Both": ["Bob", "Ann", "Cy"],
    }
    before = store.read(contents).result()
    for kind, rows in FILES.items():
        assert set(new(imported(kind, rows)).values()) == {(0, 0, 0)}, kind
    assert store.read(contents).result() == before
    require_sound(store)
    for run in runs[::-1]:
        assert undone(store, run).kept == {}
    left = store.read(lambda: [row.name for row in Artist.select()]).result()
    assert left == ["Bob"]  # which no import made
    require_sound(store)
    assert new(imported("catalog", CATALOG))["artists"] == (3, 0, 0)
    assert credited(store)["Duo"] == [DUO]  # not Bob alone, since Ann was taken back


def test_new_rows_of_the_name_are_for_the_parts(store: Store, imported: Importer) -> None:
    imported("catalog", CATALOG[:3])
    split(store, DUO, "Ann", "Bob")
    rows = [
        {"track": "Song", "artist": DUO, "album": "Both", "album_artist": " Ann  &\u200b Bob"},
        {"track": "Duo", "artist": DUO, "album": "Both", "external_id": "d", "bpm": 90},
    ]
    assert new(imported("catalog", rows)) == {
        "artists": (0, 0, 0), "albums": (0, 0, 0), "tracks": (1, 1, 0), "genres": (0, 0, 0)
    }  # fmt: skip
    heard = [
        {"track": "Made", "artist": f"{DUO};Dee", "played_at": AT},
        {"track": "Trio", "artist": f"Cy;{DUO}", "played_at": AT - DAY},
        {"track": "Song", "artist": DUO.replace(" ", "\u00a0"), "played_at": AT - 2 * DAY},
    ]
    assert new(imported("plays", heard)) == {"artists": (1, 0, 0), "tracks": (1, 0, 0), "plays": (3, 0, 0)}
    assert new(imported("plays", heard)) == {"artists": (0, 0, 0), "tracks": (0, 0, 0), "plays": (0, 0, 0)}
    found = credited(store)
    assert (found["Song"], found["Duo"], found["Both"][:2]) == (["Ann", "Bob"], ["Ann", "Bob"], ["Ann", "Bob"])
    assert found["Made"] == ["Ann", "Bob", "Dee"]
    lists = [{"playlist": "Mix", "artist": DUO, "track": "Song"}, {"playlist": "Mix", "artist": DUO, "track": "Trio"}]
    assert new(imported("playlists", lists))["entries"] == (2, 0, 0)  # Trio is by Cy, too, as in plays
    require_sound(store)


def test_a_play_of_the_name_is_not_for_a_track_of_one_part_alone(store: Store, imported: Importer) -> None:
    imported("catalog", [{"track": "Song", "artist": name} for name in ("Ann", DUO)])
    split(store, DUO, "Ann", "Bob")
    imported("plays", [{"track": "Song", "artist": name, "played_at": AT - at} for at, name in enumerate((DUO, "Ann"))])
    assert store.read(lambda: [row.track for row in Play.select().order_by(Play.played_at)]).result() == [1, 2]


def test_names_of_parts_today_count_and_an_artist_that_has_the_name_again_is_that_artist(
    store: Store, imported: Importer
) -> None:
    imported("catalog", CATALOG[1:2])
    split(store, DUO, "Ann", "Bob")
    store.write(lambda: Artist.update(name="Robert").where(Artist.name == "Bob").execute()).result()
    merge(store, "artist", 2, store.write(lambda: Artist.create(name="Anna", manager=1, created_at=NOW).id).result())
    assert set(new(imported("catalog", CATALOG[1:2])).values()) == {(0, 0, 0)}
    heard = [{"track": "Duo", "artist": DUO, "played_at": AT}]
    assert new(imported("plays", heard))["plays"] == (1, 0, 0)
    assert credited(store)["Duo"] == ["Anna", "Robert"]

    store.write(lambda: Artist.create(name=DUO, manager=1, created_at=NOW)).result()
    song = [{"track": "Song", "artist": DUO}]
    assert new(imported("catalog", song))["artists"] == (0, 0, 0)
    assert credited(store)["Song"] == [DUO]


def test_a_split_is_for_the_account_that_manages_the_parts_and_for_plays_without_an_account(
    store: Store, imported: Importer, tmp_path: Path
) -> None:
    imported("catalog", CATALOG[1:2])
    split(store, DUO, "Ann", "Bob")
    heard = [{"track": "Duo", "artist": DUO, "played_at": AT}]
    anybody = Plays(ImportOptions(listener="me"))
    assert new(import_file(store, tmp_path / "all.jsonl", anybody, heard))["plays"] == (1, 0, 0)

    store.write(lambda: users.create("other@label.test", now=NOW)).result()
    other = ImportOptions(user="other@label.test")
    summary = import_file(store, tmp_path / "other.jsonl", Catalog(other), CATALOG[1:2])
    assert new(summary)["artists"] == (1, 0, 0)
    assert store.read(lambda: Artist.get(Artist.name == DUO).manager).result() == 2


def test_a_running_import_of_plays_finds_the_parts_of_what_is_split_meanwhile(
    store: Store, imported: Importer, bounds: Bounds
) -> None:
    bounds(rows_a_unit=1)
    imported("catalog", CATALOG)
    left = [("Ann", "Bob")]

    def meanwhile(summary: ImportSummary) -> None:
        if summary.rows and left:
            split(store, DUO, *left.pop())

    heard = [
        {"track": title, "artist": DUO, "played_at": AT - at} for at, title in enumerate(("Duo", "Quartet", "New"))
    ]
    summary = imported("plays", heard, on_progress=meanwhile)
    assert (new(summary)["plays"], new(summary)["artists"], left) == ((3, 0, 0), (0, 0, 0), [])
    assert credited(store)["New"] == ["Ann", "Bob"]
    require_sound(store)
