"""Functions that get an empty collection run no statement."""

from collections.abc import Callable
from functools import partial

from musicsvc.store.abuse import earlier_reads
from musicsvc.store.accounts import users
from musicsvc.store.catalog import albums, artists, genres, identifiers, search, tracks
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import run_many
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.plays import matching
from musicsvc.store.importing.undoing import restoring, runs
from musicsvc.store.messaging import messages
from musicsvc.store.models import Tag, Track, TrackTag
from musicsvc.store.plays import subjects
from tests.support.query_count import queries

INSERT = "INSERT INTO tag (name) {rows}"
CALLS: dict[str, tuple[Callable[[], object], object]] = {
    "users.missing": (lambda: users.missing([]), set()),
    "albums.find": (lambda: albums.find([]), []),
    "albums.with_contents": (lambda: albums.with_contents([]), []),
    "artists.find": (lambda: artists.find([]), []),
    "tracks.with_artists": (lambda: tracks.with_artists([]), []),
    "tracks.with_labels": (lambda: tracks.with_labels([]), []),
    "genres.ensure": (lambda: genres.ensure([]), {}),
    "genres.ensure_tags": (lambda: genres.ensure_tags([]), {}),
    "identifiers.tracks_by_isrc": (lambda: identifiers.tracks_by_isrc([], None), {}),
    "matching by code": (lambda: matching._by_code(matching._by_isrc, [], None), {}),
    "conversations": (lambda: messages._with_contents([]), []),
    "earlier_reads.read_before": (lambda: earlier_reads.read_before([], 9), set()),
    "bulk.insert_many": (lambda: bulk.insert_many(INSERT, ("text",), []), None),
    "bulk.insert_returning": (lambda: bulk.insert_returning(INSERT, ("text",), []), []),
    "bulk.insert": (lambda: bulk.insert(Tag, ("name",), []), None),
    "run_many": (lambda: run_many("DELETE FROM tag WHERE id = ?", []), None),
    "restored fields": (lambda: restoring._restore_fields(Track, 1, {}), {}),
    "unlinked": (lambda: restoring._unlink(TrackTag, TrackTag.track, TrackTag.tag, 1, []), None),
    "restored rows": (lambda: restoring._taken(Track, 1, {}), None),
    "subjects of tracks": (lambda: subjects.of_tracks([]), ({}, {}, {}, {})),
    "slots": (lambda: runs.add_slots(1, []), None),
    "created rows": (lambda: runs.made(1, Track, []), None),
    "changed rows": (lambda: runs.changed(1, Track, {}), None),
}


def test_nothing_is_asked_for_nothing(store: Store) -> None:
    for name, (call, expected) in CALLS.items():
        with queries(store) as statements:
            assert store.read(call).result() == expected, name
        assert [each.sql for each in statements if not each.sql.startswith(("BEGIN", "COMMIT", "ROLLBACK"))] == [], name


def test_a_text_that_is_no_code_is_not_looked_up_as_one(store: Store) -> None:
    for text, asked in (("A name", (0, 0)), ("036000291452", (1, 0)), ("GBAYE6800011", (0, 1))):
        with queries(store) as statements:
            store.read(partial(search.find_albums, text)).result()
            store.read(partial(search.find_tracks, text)).result()
        sent = [each.sql.lower() for each in statements]
        assert (
            sum("upc" in sql for sql in sent),
            sum('"isrc" in' in sql or '"isrc" =' in sql for sql in sent),
        ) == asked, text
