"""Artists and tracks that `import plays` creates, and dry runs of it."""

from typing import Any

import pytest

from musicsvc.clock import SECOND
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import Counts
from musicsvc.store.models import Artist, Listener, Track, TrackArtist
from musicsvc.store.plays import ingest
from tests.conftest import NOW
from tests.support.import_files import Import
from tests.support.plays_import import kept, row, tally
from tests.support.refused_rows import reasons

pytestmark = pytest.mark.usefixtures("small_catalog")


def named(artist: str, track: str, at: int, **more: object) -> dict[str, object]:
    return {"artist": artist, "track": track, "played_at": NOW // SECOND - 60 * at} | more


MISSING = [
    named("Cleo", "Song", 1, external_id="s1"),
    named("cleo", "SONG", 2),
    named("Cleo; Dora", "Duet", 3),
    named("Bea", "New", 4),
    named("Other", "Other name", 5, external_id="s1"),
    named("Cleo", "Song", 6, external_id="s2"),
    named("Cleo", "Duet", 7),
]


def test_missing_artists_and_tracks_are_made_once(store: Store, imported: Import) -> None:
    summary = imported(MISSING, create_missing=True)
    assert (summary.counts["artists"], summary.counts["tracks"]) == (Counts(2, repeated=6), Counts(3, repeated=4))
    assert tally(summary) == (7, 0, 0)
    again = imported(MISSING, create_missing=True)
    assert (again.counts["artists"].new, again.counts["tracks"].new, tally(again)) == (0, 0, (0, 7, 0))

    def look() -> tuple[list[Any], list[Any]]:
        artists = list(Artist.select(Artist.name, Artist.manager).where(Artist.id > 3).tuples().iterator())
        columns = (Track.name, Track.duration, Track.external_id, Track.imported_for)
        return artists, list(Track.select(*columns).where(Track.id > 4).order_by(Track.id).tuples().iterator())

    artists, tracks = store.read(look).result()
    assert sorted(artists) == [("Cleo", None), ("Dora", None)]
    assert [track[:3] for track in tracks] == [
        ("Song", 0, "s1"),
        ("Duet", 0, None),
        ("New", 0, None),
    ]


def test_row_by_row_makes_what_the_whole_file_makes(imported: Import) -> None:
    whole = imported(MISSING, create_missing=True, dry_run=True)
    made = [imported([each], create_missing=True) for each in MISSING]
    for kind in ("artists", "tracks", "plays"):
        assert sum(one.counts[kind].new for one in made) == whole.counts[kind].new > 0


def test_what_is_made_is_managed_by_the_manager(store: Store, imported: Import) -> None:
    imported([named("Bea", "New", 1, external_id="n")], create_missing=True, user="label@label.test")

    def look() -> list[Any]:
        query = Track.select(Artist.name, Artist.manager, Track.imported_for).join(TrackArtist).join(Artist)
        return list(query.where(Track.name == "New").tuples().iterator())

    label = store.read(lambda: users.by_email("label@label.test").id).result()
    assert store.read(look).result() == [("Bea", label, label)]


def test_a_refused_row_makes_nothing(store: Store, imported: Import) -> None:
    nobodys = {"isrc": "GBAYE6800011", "track": "Song", "played_at": NOW // SECOND}
    summary = imported([named("Cleo", "Song", -10), nobodys], create_missing=True)
    unknown = "no track has this isrc; import the catalog first: GBAYE6800011"
    assert reasons(summary) == [(1, ingest.FUTURE), (2, unknown)]
    assert store.read(lambda: (Artist.select().count(), Track.select().count())).result() == (3, 4)


def test_a_dry_run_tells_what_would_happen_and_writes_nothing(store: Store, imported: Import) -> None:
    rows = [*MISSING, *MISSING, row(client_id="a"), row(client_id="a"), row(), row(), row(track_id=9)]
    options: dict[str, Any] = {"create_missing": True}
    predicted = imported(rows, dry_run=True, **options)
    assert kept(store) == []
    assert store.read(lambda: (Artist.select().count(), Listener.select().count())).result() == (3, 0)
    done = imported(rows, **options)
    assert predicted.counts == done.counts
    assert imported(rows, dry_run=True, **options).counts == imported(rows, **options).counts
