"""Imports find the other of what was merged by its former names and codes."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as some

from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog import search, track_lists, tracks
from musicsvc.store.catalog.track_lists import TrackFilters
from musicsvc.store.editing import deletions
from musicsvc.store.editing.merging import MergePreview, Noun
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Track,
    TrackArtist,
)
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.import_files import Rows, import_file
from tests.support.merges import FIRST_PAGE, contents, merge
from tests.support.undoing import AT, DAY, LABEL, OPTIONS, require_sound, undone

SHEET: Rows = [
    {"track": "Trio", "artist": "Clara", "album": "Chamber", "external_id": "1", "isrc": "GBAYE6800011", "bpm": 80},
    {"track": "Romance", "artist": "Clara;Fanny", "album": "Chamber", "isrc": "GBAYE6800012", "genre": "lied"},
    {"track": "romance", "artist": "Clara W.;Fanny", "album": "Chamber!", "album_external_id": "c", "tags": "slow"},
    {"track": "Quartet", "artist": "Clara W.", "album": "Chamber!", "album_external_id": "c", "upc": "036000291452"},
    {"track": "Trio (1846)", "artist": "Clara W.", "external_id": "2", "isrc": "GBAYE6800013", "bpm": 90},
]
PLAYS: Rows = [
    {"track": "Trio", "artist": "Clara", "played_at": AT, "client_id": "a"},
    {"external_id": "2", "played_at": AT + 1, "client_id": "b"},
    {"isrc": "GBAYE6800013", "played_at": AT - DAY, "client_id": "c"},
    {"track": "romance", "artist": "Clara W.;Fanny", "played_at": AT - 2 * DAY},
    {"track": "Romance", "artist": "Clara;Fanny", "played_at": AT - 2 * DAY},
]
LISTS: Rows = [
    {"playlist": "Mix", "artist": "Clara W.;Fanny", "track": "romance"},
    {"playlist": "Mix", "external_id": "2"},
    {"playlist": "Mix", "artist": "Clara W.", "track": "Quartet"},
]
MERGES: Sequence[tuple[Noun, str, str]] = [
    ("artist", "Clara W.", "Clara"),
    ("track", "Trio (1846)", "Trio"),
    ("album", "Chamber!", "Chamber"),
    ("track", "romance", "Romance"),
]


def _album(name: Any, artist: Any) -> dict[str, Any]:
    """Return the album of a row. No two albums have the same name and artist, so rows mean one of them."""
    named = name and f"{name} of {artist}"
    upc = {"One": "036000291452", "Two": None if artist == "Ann" else "4006381333931"}.get(name)
    return {"album": named, "album_external_id": named if artist == "Cleo" else None, "upc": upc}


ROWS = some.fixed_dictionaries(
    {
        "track": some.sampled_from(["Rag", "Waltz"]),
        "artist": some.sampled_from(["Ann", "Bea", "Ann;Bea", "Cleo"]),
        "external_id": some.sampled_from([None, None, "1", "2"]),
        "album": some.sampled_from([None, "One", "Two"]),
        "isrc": some.sampled_from([None, None, "GBAYE6800011", "USX9X2400001"]),
        "bpm": some.sampled_from([None, 90, 120]),
    }
).map(lambda row: {**row, **_album(row["album"], row["artist"])})
# By which an import tells tracks apart: no two rows are about one track.
NAMES = itemgetter("artist", "track", "album")
KEYS = (NAMES, lambda row: row["external_id"] or NAMES(row), lambda row: row["isrc"] or NAMES(row))
TABLES: dict[str, Any] = {"artist": Artist, "album": Album, "track": Track}


def merge_named(store: Store, noun: Noun, source: str, target: str) -> MergePreview:
    def ids() -> list[int]:
        table = TABLES[noun]
        return [table.get(table.name == name).id for name in (source, target)]

    return merge(store, noun, *store.read(ids).result())


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Callable[..., ImportSummary]:
    store.write(lambda: users.create(LABEL, now=NOW).id).result()

    def run(kind: str, rows: Rows) -> ImportSummary:
        return import_file(store, tmp_path / f"{kind}.jsonl", OPTIONS[kind](), rows)

    return run


def new(summary: ImportSummary) -> dict[str, tuple[int, int]]:
    return {kind: (each.new, each.refused) for kind, each in summary.counts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("order", [MERGES, MERGES[::-1]])
def test_files_that_are_imported_again_after_merges_find_all_and_change_nothing(
    store: Store, imported: Callable[..., ImportSummary], order: Sequence[tuple[Noun, str, str]]
) -> None:
    files = {"catalog": SHEET, "plays": PLAYS, "playlists": LISTS}
    runs = [imported(kind, rows).run for kind, rows in files.items()]
    dropped = sum(merge_named(store, *each).repeated_plays for each in order)
    assert dropped == 2  # of Trio (1846), and of romance
    before = store.read(contents).result()
    for kind, rows in files.items():
        assert set(new(imported(kind, rows)).values()) == {(0, 0)}, kind
    assert store.read(contents).result() == before
    require_sound(store)
    kept = {reason for run in runs[::-1] for reason in undone(store, run).kept}
    assert {table for table, reason in kept if reason.endswith("edited")} == {"track", "album", "artist"}
    require_sound(store)


@pytest.mark.slow
@given(rows=some.lists(ROWS, min_size=2, max_size=8, unique_by=KEYS), chance=some.randoms(use_true_random=False))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_imported_and_merged_the_same_file_brings_nothing_new(
    new_database: Callable[[], str], tmp_path: Path, rows: Rows, chance: Any
) -> None:
    with opening.connect(new_database()) as store:
        store.write(lambda: users.create(LABEL, now=NOW).id).result()
        file = tmp_path / "rows.jsonl"
        first = import_file(store, file, OPTIONS["catalog"](), rows)
        assume(not first.refused)  # which might be accepted after a merge
        for _ in range(4):
            noun: Noun = chance.choice(["artist", "album", "track", "track"])
            rows_of: list[Any] = store.read(partial(list, TABLES[noun].select())).result()
            if len(rows_of) > 1:
                merge(store, noun, *chance.sample(sorted(row.id for row in rows_of), 2))
        merged = import_file(store, file, OPTIONS["catalog"](), rows)
        assert {kind: each.new for kind, each in merged.counts.items()} == dict.fromkeys(first.counts, 0)
        assert merged.refused == []
        require_sound(store)


def test_the_codes_of_what_was_merged_lead_to_the_other(store: Store, imported: Callable[..., ImportSummary]) -> None:
    imported("catalog", SHEET)
    for each in MERGES:
        merge_named(store, *each)

    def found() -> list[Any]:
        return [
            [row.name for row in track_lists.find(TrackFilters(external_id="2"), FIRST_PAGE).rows],
            [row.name for row in track_lists.find(TrackFilters(isrc="GBAYE6800013"), FIRST_PAGE).rows],
            [row.name for row in search.find_tracks("GB-AYE-68-00013").rows],
            [row.name for row in search.find_albums("036000291452").rows],
            [row.details[0] for row in search.find_albums("Chamber").rows],
        ]

    assert store.read(found).result() == [["Trio"], ["Trio"], ["Trio"], ["Chamber"], ["036000291452"]]
    of_track = imported("plays", [{"artist": "Trio (1846)", "track": "Trio", "played_at": AT}])
    assert new(of_track)["artists"] == (1, 0)  # no former name of an artist


def test_an_undo_leaves_the_album_its_only_artist(store: Store, imported: Callable[..., ImportSummary]) -> None:
    song = {"album": "Lp", "album_external_id": "a"}
    imported("catalog", [song | {"track": "Rag", "artist": "Clara"}])
    added = imported("catalog", [song | {"track": "Trio", "artist": "Clara W."}]).run
    merge_named(store, "artist", "Clara", "Clara W.")
    assert undone(store, added).kept[("album", "artists changed since")] == [1]
    assert store.read(Album.select().join(AlbumArtist).count).result() == 1


def test_a_running_import_finds_the_other_of_what_is_merged_meanwhile(
    store: Store, imported: Callable[..., ImportSummary], tmp_path: Path, bounds: Bounds
) -> None:
    bounds(rows_a_unit=2)
    imported("catalog", SHEET)
    left: list[tuple[Noun, str, str]] = [MERGES[1], MERGES[0]]

    def meanwhile(summary: ImportSummary) -> None:
        if summary.rows and left:
            merge_named(store, *left.pop())

    rows = [
        {"artist": "Clara W.", "track": title, "played_at": AT - number * DAY}
        for number, title in enumerate(("Quartet", "Trio (1846)", "Trio (1846)", "Quartet", "Trio (1846)", "New one"))
    ]
    file = tmp_path / "running.jsonl"
    summary = import_file(store, file, OPTIONS["plays"](), rows, on_progress=meanwhile)
    assert (new(summary), left) == ({"artists": (0, 0), "tracks": (1, 0), "plays": (6, 0)}, [])
    named = store.read(
        lambda: {
            row.name: [a.artist for a in TrackArtist.select().where(TrackArtist.track == row.id)]
            for row in Track.select()
        }
    )
    assert named.result()["New one"] == named.result()["Trio"]
    require_sound(store)


def test_a_running_import_of_playlists_finds_the_other_and_what_was_deleted_is_missing(
    store: Store, imported: Callable[..., ImportSummary], tmp_path: Path, bounds: Bounds
) -> None:
    bounds(rows_a_unit=2)
    imported("catalog", SHEET)

    def meanwhile(summary: ImportSummary) -> None:
        if summary.rows == 2:
            for each in MERGES[:2]:
                merge_named(store, *each)
        elif summary.rows == 4:
            row = store.read(lambda: tracks.get(Track.get(Track.name == "Trio").id)).result()
            store.write(partial(deletions.delete, row, now=NOW, account=None, actor="cli")).result()

    titles = ("Quartet", "Trio (1846)", "Trio (1846)", "Quartet", "Quartet", "Trio (1846)")
    rows = [{"playlist": "P", "artist": "Clara W.", "track": title} for title in titles]
    file = tmp_path / "running.jsonl"
    summary = import_file(store, file, OPTIONS["playlists"](), rows, on_progress=meanwhile)
    entries = summary.counts["entries"]
    assert (entries.new, entries.repeated, [each.line for each in summary.refused]) == (2, 3, [6])
