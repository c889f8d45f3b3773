"""Imports and searches find tracks, albums and playlists by their ids, in whatever notation these are written."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from musicsvc.clock import SECOND
from musicsvc.store.accounts import users
from musicsvc.store.catalog import track_lists
from musicsvc.store.catalog.track_lists import TrackFilters
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions, Kind
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Play, Playlist, PlaylistTrack, Track
from tests.conftest import NOW
from tests.support.history_files import stream
from tests.support.import_files import Import, Rows, import_file

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

MBID = "8f3471b5-7e6a-48da-86a9-c1c07a0f47ae"
WAYS = ("spotify:track:abc", "https://open.spotify.com/track/abc?si=1", "https://open.spotify.com/intl-de/track/abc")
OWNER = "owner@owner.test"
NAMED = {"track": "Rag", "artist": "Ann"}


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Imports rows as a catalog, as plays or as playlists."""
    store.write(lambda: users.create(OWNER, now=NOW)).result()

    def run(rows: Rows, kind: type[Kind[Any]] = Catalog, **options: Any) -> ImportSummary:
        chosen = ImportOptions(**({"listener": "me", "user": OWNER} | options))
        return import_file(store, tmp_path / "rows.jsonl", kind(chosen), rows)

    return run


def ids(store: Store, table: Any) -> list[str]:
    query = table.select(table.external_id).order_by(table.id)
    return store.read(lambda: [row[0] for row in query.tuples().iterator()]).result()


@pytest.mark.parametrize("first", [*WAYS, "abc"])
def test_a_catalog_in_any_notation_is_repeated_by_one_in_another(imported: Import, store: Store, first: str) -> None:
    album = {"album": "Two", "album_external_id": "https://open.spotify.com/album/two?si=2"}
    again = {"album": "Two", "album_external_id": "spotify:album:two"}

    assert imported([NAMED | album | {"external_id": first}]).counts["tracks"].new == 1
    found = imported([NAMED | again | {"track_uri": each} for each in (*WAYS, "abc")]).counts

    assert (found["tracks"].new, found["tracks"].repeated, found["albums"].repeated) == (0, 4, 4)
    assert (ids(store, Track), ids(store, Album)) == (["abc"], ["two"])


@pytest.mark.slow
@pytest.mark.parametrize("stored", [*WAYS, "abc"])
def test_plays_find_the_track_in_any_notation(imported: Import, store: Store, tmp_path: Path, stored: str) -> None:
    imported([{"track": "Other", "artist": "Somebody", "external_id": stored}])
    rows = [{"external_id": each, "played_at": NOW // SECOND - 60 * at} for at, each in enumerate((*WAYS, "abc"), 1)]

    assert imported(rows, Plays).counts["plays"].new == 4
    assert imported(rows[::-1], Plays).counts["plays"].repeated == 4
    named = {"artist_name": "Ann", "track_name": "Rag", "additional_info": {"spotify_id": WAYS[1]}}
    for history in (stream(), {"listened_at": NOW // SECOND - 600, "track_metadata": named}):
        file = tmp_path / "history.json"
        file.write_bytes(orjson.dumps([history]))
        assert import_file(store, file, Plays(ImportOptions(listener="me"))).counts["plays"].new == 1
    assert store.read(lambda: {play.track for play in Play.select()}).result() == {1}


def test_tracks_that_plays_create_have_bare_ids(imported: Import, store: Store) -> None:
    rows = [NAMED | {"external_id": f"https://musicbrainz.org/recording/{MBID.upper()}", "played_at": NOW // SECOND}]

    assert imported(rows, Plays, create_missing=True).counts["tracks"].new == 1
    assert ids(store, Track) == [MBID]
    assert imported([NAMED | {"external_id": f"mbid:{MBID}"}]).counts["tracks"].repeated == 1


def test_playlists_have_bare_ids(imported: Import, store: Store) -> None:
    imported([NAMED | {"external_id": WAYS[0]}])
    ways = ("spotify:playlist:p", "spotify:user:ann:playlist:p", "https://open.spotify.com/playlist/p?si=3", "p")
    rows = [{"playlist": "Mine", "playlist_external_id": way, "external_id": WAYS[1]} for way in ways]

    counts = imported(rows, Playlists).counts

    assert (counts["playlists"].new, counts["playlists"].repeated) == (1, 3)
    assert ids(store, Playlist) == ["p"]
    assert store.read(PlaylistTrack.select().count).result() == 1


@pytest.mark.parametrize("asked", [*WAYS, "abc"])
def test_tracks_are_listed_by_an_id_in_any_notation(imported: Import, store: Store, asked: str) -> None:
    imported([NAMED | {"external_id": WAYS[0]}, NAMED | {"track": "Waltz", "external_id": "abd"}])

    found = store.read(lambda: track_lists.find(TrackFilters(external_id=asked), Page(1, 10)).ids).result()

    assert found == [1]
