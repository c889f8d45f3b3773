"""All imports compare names by their keys: names that look alike are one, and stay as they came."""

import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.editing import twins
from musicsvc.store.engine import name_index
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import Counts, ImportSummary
from musicsvc.store.models import Album, Artist, Merged, Play, Playlist, Track, TrackArtist
from musicsvc.store.people import deletion
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.import_files import Rows, import_file
from tests.support.merges import merge
from tests.support.spellings import require_spellings
from tests.support.undoing import AT, LABEL, require_sound, undone

ALIKE = {
    "composed": ("Bj\u00f6rk", "Bjo\u0308rk"),
    "hyphen": ("a-ha", "a\u2010ha"),
    "dash": ("Live \u2013 One", "Live - One"),
    "quotes": ("\u201cHeroes\u201d", '"Heroes"'),
    "apostrophe": ("Don't", "Don\u2019t"),
    "zero width": ("Blink", "Bl\u200bink"),
    "byte order mark": ("\ufeffBlink", "Blink"),
    "no break": ("Two Doors", "Two\u00a0Doors"),
    "two blanks": ("Two  Doors", "Two Doors"),
    "soft hyphen": ("Super\u00adnova", "Supernova"),
    "right to left": ("\u202bAir\u202c", "Air"),
}
of_each = pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE)
Brought = Callable[..., dict[str, tuple[int, int, int, int]]]


@pytest.fixture
def brought(store: Store, tmp_path: Path) -> Brought:
    """Return a function that imports rows for an account and returns the counts of each kind."""
    store.write(lambda: users.create(LABEL, now=1) and None).result()
    kinds: dict[str, Any] = {"catalog": Catalog, "plays": Plays, "playlists": Playlists}

    def bring(kind: str, rows: Rows, **options: Any) -> dict[str, tuple[int, int, int, int]]:
        options = {"user": LABEL, "listener": "me"} | options if kind == "plays" else {"user": LABEL} | options
        made = kinds[kind](ImportOptions(**options))
        summary: ImportSummary = import_file(store, tmp_path / "rows.jsonl", made, rows)
        return {name: _counted(each) for name, each in summary.counts.items()}

    return bring


def _counted(counts: Counts) -> tuple[int, int, int, int]:
    return counts.new, counts.changed, counts.repeated, counts.refused


def sheet(name: str, at: int = 0) -> dict[str, object]:
    return {"track": name, "artist": name, "album": name, "playlist": name, "played_at": AT + at}


def names(store: Store, table: Any) -> list[str]:
    query = table.select(table.name).order_by(table.id)
    return store.read(lambda: [row.name for row in query.iterator()]).result()


@of_each
def test_a_second_import_finds_what_looks_alike(store: Store, brought: Brought, one: str, other: str) -> None:
    assert brought("catalog", [sheet(one)])["tracks"] == (1, 0, 0, 0)
    again = {"artists": (0, 0, 1, 0), "albums": (0, 0, 1, 0), "tracks": (0, 0, 1, 0), "genres": (0, 0, 0, 0)}
    assert brought("catalog", [sheet(other)]) == again
    assert [names(store, table) for table in (Artist, Album, Track)] == [[one.strip()]] * 3
    require_spellings(store)


@of_each
def test_rows_of_one_file_are_compared_so_too(
    store: Store, brought: Brought, bounds: Bounds, one: str, other: str
) -> None:
    bounds(rows_a_unit=2)
    rows = [sheet(one), sheet(other), sheet(other), sheet(one)]
    for options in ({"dry_run": True}, {}):
        found = brought("catalog", rows, **options)
        assert (found["artists"], found["albums"], found["tracks"]) == ((1, 0, 3, 0),) * 3
    assert names(store, Track) == [one]


@of_each
def test_plays_and_playlists_find_what_looks_alike(store: Store, brought: Brought, one: str, other: str) -> None:
    brought("catalog", [sheet(one)])
    assert brought("plays", [sheet(other), sheet(one)])["plays"] == (1, 0, 1, 0)
    assert brought("playlists", [sheet(one)])["playlists"] == (1, 0, 0, 0)
    found = brought("playlists", [sheet(other)])
    assert (found["playlists"], found["entries"]) == ((0, 0, 1, 0), (0, 0, 1, 0))
    assert names(store, Playlist) == [one]
    require_spellings(store)


@of_each
def test_plays_create_nothing_that_looks_alike(brought: Brought, one: str, other: str) -> None:
    found = brought("plays", [sheet(one), sheet(other, 40), sheet(other)], create_missing=True)
    assert (found["artists"], found["tracks"], found["plays"]) == ((1, 0, 2, 0), (1, 0, 2, 0), (2, 0, 1, 0))


@of_each
def test_names_of_before_that_look_alike_are_proposed_as_duplicates(
    store: Store, brought: Brought, one: str, other: str
) -> None:
    brought("catalog", [sheet("Plain")])

    def make() -> int:
        label = users.by_email(LABEL).id
        for at, name in enumerate((one, other), 2):
            Artist.insert(id=at, name=name, manager=label, created_at=1).execute()
            Track.insert(id=at, name=name, duration=1, created_at=1).execute()
            TrackArtist.insert(track=at, artist=at, position=0).execute()
        return int(label)

    label = store.write(make).result()
    for noun in ("artist", "track"):
        pairs = store.read(partial(twins.find, noun, label)).result()
        assert [twins.PAIR.unpack(pairs)[:2]] == [(3, 2)]


def test_case_and_accents_count(brought: Brought) -> None:
    found = brought("catalog", [sheet(name) for name in ("Kiss", "KISS", "K\u00efss", "Ki ss", "Ki-ss")])
    assert (found["artists"], found["tracks"]) == ((5, 0, 0, 0), (5, 0, 0, 0))


def test_of_several_matches_the_one_written_exactly_so_wins(store: Store, brought: Brought) -> None:
    written = ("a\u2010ha", "a-ha", "a\u2011ha")

    def make() -> None:
        label = users.by_email(LABEL).id
        for at, name in enumerate(written):
            made = {"id": at + 1, "name": name, "created_at": 1}
            Artist.insert(**made, manager=label).execute()
            Track.insert(**made, duration=1).execute()
            TrackArtist.insert(track=at + 1, artist=at + 1, position=0).execute()
            Playlist.insert(**made, owner=label).execute()

    store.write(make).result()
    rows = [sheet(name, at) | {"album": None} for at, name in enumerate((*written, "a\u2012ha"))]
    found = brought("catalog", rows)
    assert (found["artists"], found["tracks"]) == ((0, 0, 4, 0), (0, 0, 4, 0))
    brought("plays", rows)
    brought("playlists", rows[:3])
    heard, listed = store.read(
        lambda: (
            fetch("SELECT track_id, count(*) FROM play GROUP BY 1 ORDER BY 1"),
            fetch("SELECT playlist_id, track_id FROM playlist_track ORDER BY id"),
        )
    ).result()
    assert [tuple(row) for row in heard] == [(1, 1), (2, 1), (3, 1)]
    assert [tuple(row) for row in listed] == [(1, 1), (2, 2), (3, 3)]


def test_a_track_with_an_id_takes_its_name_as_it_comes(store: Store, brought: Brought) -> None:
    row = sheet("Don't") | {"external_id": "x"}
    brought("catalog", [row])
    assert brought("catalog", [row | {"track": "Don\u2019t"}])["tracks"] == (0, 1, 0, 0)
    assert names(store, Track) == ["Don\u2019t"]


@pytest.mark.parametrize("noun", ["artist", "album", "track"])
def test_what_was_merged_is_found_by_names_that_look_alike(store: Store, brought: Brought, noun: Any) -> None:
    one, other = "a\u2010ha", "Ah"
    artist = one if noun == "artist" else "Same"
    brought("catalog", [sheet(one) | {"artist": artist}, sheet(other) | {"artist": "Same"}])
    ids = {name: row_id for row_id, name in store.read(lambda: fetch(f"SELECT id, name FROM {noun}")).result()}
    merge(store, noun, ids[one], ids["Same" if noun == "artist" else other])
    require_spellings(store)
    row = sheet("a\u2011ha") | {"artist": "a\u2011ha" if noun == "artist" else "Same"}
    if noun == "track":
        row["album"] = one
    found = brought("catalog", [row])
    assert found[f"{noun}s"] == (0, 0, 1, 0)
    if noun != "album":
        assert brought("plays", [row])["plays"] == (1, 0, 0, 0)
        assert brought("playlists", [row])["entries"] == (1, 0, 0, 0)
    require_sound(store)


def test_a_repeated_history_is_found_though_its_track_was_renamed(store: Store, brought: Brought) -> None:
    rows = [sheet("Bj\u00f6rk"), sheet("Bj\u00f6rk", 60) | {"client_id": "a"}]
    brought("plays", rows, create_missing=True)
    store.write(lambda: run("UPDATE track SET name = 'Other'")).result()
    again = [row | {name: unicodedata.normalize("NFD", str(row[name])) for name in ("track", "artist")} for row in rows]
    assert brought("plays", again, create_missing=True)["plays"] == (0, 0, 2, 0)
    assert store.read(lambda: Play.select().count()).result() == 2


def test_spellings_go_with_the_rows(store: Store, brought: Brought) -> None:
    rows = [sheet("a\u2010ha"), sheet("Don\u2019t")]
    heir = store.write(lambda: users.create("heir@label.test", now=1)).result()
    brought("catalog", rows)
    brought("playlists", rows)
    store.write(lambda: deletion.delete(users.by_email(LABEL).id, artists_to=heir, now=NOW) and None).result()
    require_spellings(store)
    assert store.read(lambda: fetch("SELECT name FROM name_spelling WHERE source = 'playlist'")).result() == []


def test_an_undo_and_a_recount_keep_the_spellings_right(store: Store, brought: Brought) -> None:
    brought("catalog", [sheet("a\u2010ha")])
    brought("catalog", [sheet("Don\u2019t"), sheet("Plain")])
    store.write(lambda: run("UPDATE artist SET name = 'Two  Doors' WHERE name = 'Plain'")).result()
    require_spellings(store)
    undone(store, 1)
    require_spellings(store)
    store.write(name_index.rebuild).result()
    require_spellings(store)
    assert store.read(lambda: Merged.select().count()).result() == 0
