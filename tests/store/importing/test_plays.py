"""`import plays` in the store: matching of tracks, repeated plays, created tracks, refused rows."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, MINUTE, SECOND, isoformat
from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.cells import times
from musicsvc.store.importing.plays.matching import SEVERAL, SeenIds
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import Counts, ImportSummary
from musicsvc.store.models import Artist, Listener, Play, Track, TrackArtist
from musicsvc.store.plays import ingest, retention, verify
from musicsvc.store.plays.subjects import ARTIST, TRACK
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.bounds import Bounds
from tests.support.import_files import Import, import_file
from tests.support.plays_import import BLOCK, kept, played, row, tally
from tests.support.refused_rows import reasons

pytestmark = pytest.mark.usefixtures("small_catalog")


def test_every_field_goes_where_it_belongs(store: Store, imported: Import) -> None:
    rows = [
        row(listener=" radio one ", duration_ms="1000.4", client_id="a"),
        row(track_id="3", played_at=isoformat(NOW - DAY)),
    ]
    assert tally(imported(rows)) == (2, 0, 0)
    assert kept(store) == [(3, NOW - DAY, "opaque:me"), (1, NOW - MINUTE, "opaque:radio one")]
    (play,) = store.read(lambda: list(Play.select().where(Play.track == 1))).result()
    assert (play.duration_ms, play.reporter, len(play.client_key)) == (1000, 0, 16)
    assert play.reported_at == NOW


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1140000000", 1_140_000_000 * SECOND),
        ("1140000000.5", 1_140_000_000 * SECOND + SECOND // 2),
        (1_140_000_000, 1_140_000_000 * SECOND),
        (1_140_000_000.25, 1_140_000_000 * SECOND + SECOND // 4),
        ("2006-02-15T10:40:00Z", 1_140_000_000 * SECOND),
        ("2006-02-15 10:40:00", 1_140_000_000 * SECOND),
        ("2006-02-15T12:40:00+0200", 1_140_000_000 * SECOND),
        ("2006-02-15 05:10:00,5 -05:30", 1_140_000_000 * SECOND + SECOND // 2),
        ("1970-01-01T00:00:00Z", 0),
        (0, 0),
    ],
)
def test_a_time_is_iso_8601_or_unix_seconds_of_any_age(text: object, instant: int) -> None:
    assert times.instant(text) == instant


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("played_at", None, "played_at is missing"),
        ("played_at", "yesterday", "played_at must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"),
        ("played_at", "2026-02-30T00:00:00Z", "played_at must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"),
        ("played_at", "8:15 PM", "played_at has no date; put date and time into one column, such as 2026-01-31 08:15"),
        ("played_at", "2026-01-31", "played_at must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"),
        ("played_at", 1_140_000_000_000_000, f"played_at {times.OUT_OF_RANGE}"),
        ("played_at", 45372.604167, f"played_at {times.SERIAL}"),
        ("played_at", 0.604167, f"played_at {times.SERIAL}"),
        ("played_at", "2026-01-31 12:00:00 CET", f"played_at {times.ZONED}"),
        ("played_at", -1, "played_at is before 1970"),
        ("played_at", 0, "played_at is that of a clock that was not set"),
        ("played_at", "1980-01-01T00:00:00Z", "played_at is that of a clock that was not set"),
        ("played_at", NOW // SECOND + 301, "The time is more than 5 minutes in the future."),
        ("track_id", 9, "no track has this track_id: 9"),
        ("track_id", "1.5", "track_id must be an id"),
        ("track_id", None, "artist is missing; track is missing"),
        ("listener", "x" * 65, "listener must not be longer than 64 characters"),
        ("client_id", "a\0b", "client_id must not contain a NUL character"),
        ("plays", "2.5", "plays must be 1, as each row is one play; line 2 has 2.5"),
    ],
)
def test_a_row_that_does_not_go_in_is_listed_by_its_line(
    store: Store, imported: Import, field: str, value: object, reason: str
) -> None:
    summary = imported([row(), row(**{field: value}), row(track_id=3)])
    assert reasons(summary) == [(2, reason)]
    assert (tally(summary), len(kept(store))) == ((2, 0, 1), 2)


def test_plays_of_any_age_are_counted_on_the_day_they_were_played(store: Store, imported: Import) -> None:
    old = 20 * 365 * DAY
    imported([row(played_at=(NOW - old) // SECOND), row(played_at=1), row(played_at=NOW // SECOND + 300)])
    day = (NOW - old) // DAY

    def read() -> list[int]:
        spans = ((day, day + 1), (0, 1), (NOW // DAY, NOW // DAY + 1), (0, play_counts.ALL_TIME))
        return [play_counts.over(TRACK, 1, *span).plays for span in spans]

    assert store.read(read).result() == [1, 1, 1, 3]


def test_plays_before_what_is_kept_are_refused(store: Store, imported: Import) -> None:
    retention.prune(store, 10, now=NOW, on_progress=lambda _done, _total: None)
    kept = (NOW // DAY - 10) * 86400
    summary = imported([row(played_at=kept - 20 * 86400), row(played_at=kept - 1), row(played_at=kept), row()])
    assert reasons(summary) == [(1, ingest.PRUNED), (2, ingest.PRUNED)]
    assert tally(summary) == (2, 0, 2)


def test_a_second_run_changes_nothing_and_a_longer_file_adds_what_is_new(store: Store, imported: Import) -> None:
    rows = [row(played_at=NOW // SECOND - 60 * at, client_id=None if at % 2 else str(at)) for at in range(50)]
    assert tally(imported(rows[:30])) == (30, 0, 0)
    assert tally(imported(rows[:30], name="renamed.jsonl")) == (0, 30, 0)
    assert tally(imported(rows)) == (20, 30, 0)
    assert len(kept(store)) == 50


def test_within_a_file_a_clients_id_is_one_play(store: Store, imported: Import) -> None:
    rows = [row(client_id="a"), row(client_id="a", track_id=3), row(client_id="b"), row(track_id=3)]
    assert tally(imported(rows)) == (3, 1, 0)
    assert [track for track, _, _ in kept(store)] == [1, 1, 3]


def test_an_id_whose_first_row_was_refused_is_not_taken_yet(store: Store, imported: Import) -> None:
    assert tally(imported([row(client_id="a", track_id=9), row(client_id="a")])) == (1, 0, 1)
    assert len(kept(store)) == 1


def test_files_whose_ids_clash_lose_nothing(store: Store, imported: Import) -> None:
    imported([row(client_id="1"), row(client_id="2", track_id=3)])
    other = [row(client_id="1", track_id=3), row(client_id="2", track_id=3), row(client_id="1")]
    assert tally(imported(other)) == (1, 2, 0)
    assert len(kept(store)) == 3


def test_a_clients_id_counts_across_the_batches_of_a_file(imported: Import) -> None:
    rows = [row(played_at=NOW // SECOND - 60 * (at + 1)) for at in range(BLOCK)]
    assert tally(imported([row(client_id="a"), *rows, row(client_id="a", track_id=3)])) == (BLOCK + 1, 1, 0)


def test_client_ids_are_remembered_on_disk_once_they_are_many(bounds: Bounds) -> None:
    bounds(max_in_memory=10)
    with closing(SeenIds()) as seen:
        for number in range(25):
            assert not seen.has(f"{number}")
            seen.add([f"{number}"] * 2)
        assert all(seen.has(f"{number}") for number in range(25))
        assert not seen.has("25")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        seen.has("1")


@pytest.mark.parametrize(
    ("names", "tracks"),
    [
        ({"external_id": "x"}, [3]),
        ({"external_id": "y"}, [4]),
        ({"external_id": ["gone", "y"]}, [4]),
        ({"external_id": "gone", "artist": "Ann", "track": "Rag"}, [1]),
        ({"artist": "Ann", "track": "Rag"}, [1]),
        ({"artist": " ann ", "track": "Rag"}, [2]),
        ({"artist": "Bea", "track": "Rag"}, [2]),
        ({"artist": "ann; Bea", "track": "Rag"}, [2]),
        ({"artist": "Bea; ann", "track": "rag"}, [2]),
        ({"artist": "Bea; Cleo", "track": "Rag"}, [2]),
        ({"artist": "ANN", "track": "Rag"}, []),
        ({"artist": "BEA", "track": "WALTZ"}, [3]),
        ({"artist": "Bea", "track": "Waltz"}, [3]),
        ({"artist": "Bea", "track": "Waltz", "album": "two"}, [4]),
        ({"artist": "Bea", "track": "Waltz", "album": "Three"}, [3]),
        ({"artist": "Cleo", "track": "Rag"}, []),
        ({"artist": "Ann", "track": "Waltz"}, []),
    ],
)
def test_a_track_is_found_by_id_else_by_artist_and_name(
    store: Store, imported: Import, names: dict[str, object], tracks: list[int]
) -> None:
    assert played(imported, store, **names) == tracks


def test_among_tracks_of_one_name_the_number_of_artists_goes_before_the_album_and_that_before_the_id(
    store: Store, imported: Import
) -> None:
    def add() -> None:
        for track, name, album, artists in ((5, "Air", 1, (2, 3)), (6, "Air", None, (2,)), (7, "Air", 1, (2,))):
            Track.create(id=track, name=name, duration=1, album=album, created_at=NOW)
            for position, artist in enumerate(artists):
                TrackArtist.create(track=track, artist=artist, position=position)

    store.write(add).result()
    rows = [
        {"artist": "ann", "track": "Air", "album": "Two"},
        {"artist": "ann", "track": "Air"},
        {"artist": "ann;Bea", "track": "Air"},
        {"artist": "ann;Bea", "track": "Air", "album": "One"},
        {"artist": "ann", "track": "Air", "album": "One"},
    ]
    imported([each | {"played_at": NOW // SECOND - 60 * (at + 1)} for at, each in enumerate(rows)])
    assert [track for track, _, _ in reversed(kept(store))] == [7, 6, 5, 5, 6]


@pytest.mark.parametrize("client_id", [None, "a"])
def test_a_play_whose_names_match_another_track_by_now_is_repeated_and_a_new_one_beside_it_is_not(
    store: Store, imported: Import, client_id: str | None
) -> None:
    at = (NOW // SECOND - 600) // 30 * 30
    old = {"artist": "Bea", "track": "Waltz", "played_at": at, "client_id": client_id}
    imported([old])
    store.write(lambda: Track.update(name="Polka").where(Track.id == 3).execute()).result()
    assert tally(imported([old])) == (0, 1, 0)
    assert tally(imported([old | {"played_at": at + 1}])) == ((0, 1, 0) if client_id is None else (1, 0, 0))
    assert tally(imported([old | {"client_id": "b"}])) == (1, 0, 0)
    new = [4] if client_id is None else [4, 4]
    assert sorted(track for track, _, _ in kept(store)) == [3, *new]


def test_two_columns_may_hold_ids_and_artists(store: Store, imported: Import) -> None:
    pairs = ["id=external_id", "code=external_id", "by=artist", "with=artist", "song=track"]
    rows = [{"id": "gone", "code": "y"}, {"by": "Bea", "with": "ann", "song": "Rag"}]
    imported([each | {"played_at": NOW // SECOND - at} for at, each in enumerate(rows)], pairs=pairs)
    assert sorted(track for track, _, _ in kept(store)) == [2, 4]


def test_the_managers_tracks_go_before_others(store: Store, imported: Import) -> None:
    imported([{"external_id": "x", "played_at": NOW // SECOND}], user="label@label.test")
    imported([{"artist": "ANN", "track": "rag", "played_at": NOW // SECOND - 60}], user="label@label.test")
    assert [track for track, _, _ in kept(store)] == [1]


def test_what_is_not_found_says_how_it_can_be(imported: Import) -> None:
    rows = [
        row(track_id=None, external_id="gone"),
        row(track_id=None, artist="Cleo", track="Rag"),
        row(track_id=None, artist="ANN", track="Rag"),
    ]
    assert reasons(imported(rows)) == [
        (1, "no track has this external_id; import the catalog first: 'gone'"),
        (2, "no such track; --create-missing creates it: 'Rag' by Cleo"),
        (3, f"{SEVERAL}: 'Rag' by ANN (track_id 1 or 2)"),
    ]


def test_without_a_listener_each_row_is_refused_and_a_table_at_once(
    store: Store, imported: Import, tmp_path: Path
) -> None:
    summary = imported([row(), row(listener="b")], listener=None)
    assert reasons(summary) == [(1, "listener is missing; name a listener for the whole file with --listener")]
    file = tmp_path / "plays.csv"
    file.write_text("artist,track,played_at\nAnn,Rag,1140000000\n")

    def run(**options: Any) -> ImportSummary:
        return import_file(store, file, Plays(ImportOptions(**options)))

    with pytest.raises(Failure, match="--listener NAME"):
        run()
    with pytest.raises(Failure, match="1 to 64"):
        run(listener=" ")
    assert tally(run(listener="me")) == (1, 0, 0)
    file.write_text("artist,played_at\nAnn,1140000000\n")
    with pytest.raises(Failure, match="track_id, external_id, isrc, or both artist and track"):
        run(listener="me")


PLAYS = some.lists(
    some.fixed_dictionaries(
        {
            "track_id": some.integers(1, 4),
            "listener": some.sampled_from(["a", "b"]),
            "played_at": some.integers(0, 12).map(lambda at: NOW // SECOND - 20 * at - 86400 * 33 * (at % 3)),
            "client_id": some.sampled_from([None, None, "1", "2", "3"]),
        }
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=PLAYS)
def test_whatever_is_imported_a_recount_finds_it_all(store: Store, imported: Import, rows: list[Any]) -> None:
    predicted = imported(rows, dry_run=True)
    done = imported(rows)
    assert predicted.counts == done.counts
    assert tally(imported(rows))[0] == 0
    report = verify.run(store, check=True, on_progress=lambda _done, _total: None)
    assert (report.differing, report.plays) == (0, len(kept(store)))
    assert store.read(lambda: play_counts.all_time(ARTIST, 3).plays).result() == sum(
        track in {2, 3, 4} for track, _, _ in kept(store)
    )


# Artists and tracks that `import plays` creates, and dry runs of it.


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
    named("CLEO", "Solo", 8),
]


def test_missing_artists_and_tracks_are_made_once(store: Store, imported: Import) -> None:
    summary = imported(MISSING, create_missing=True)
    assert (summary.counts["artists"], summary.counts["tracks"]) == (Counts(2, repeated=7), Counts(4, repeated=4))
    assert tally(summary) == (8, 0, 0)
    again = imported(MISSING, create_missing=True)
    assert (again.counts["artists"].new, again.counts["tracks"].new, tally(again)) == (0, 0, (0, 8, 0))

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
        ("Solo", 0, None),
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
    unknown = "no track has this ISRC; import the catalog first: GBAYE6800011"
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


def test_what_another_import_makes_meanwhile_is_not_made_again(store: Store, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=1)
    rows = [named("Cleo", "Song", 1), named("Dora", "Song", 2), named("Cleo", "New", 3), named("Bea", "Waltz", 4)]
    made: list[int] = []

    def make(name: str, part: list[dict[str, object]], after: int = -1) -> ImportSummary:
        def other(summary: ImportSummary) -> None:
            if summary.rows == after:
                made.append(make("other", rows[1:3]).counts["tracks"].new)

        kind = Plays(ImportOptions(listener=name, create_missing=True))
        return import_file(store, tmp_path / name, kind, part, on_progress=other)

    assert make("one", rows, 1).counts["tracks"].new == 1
    assert made == [2]
    assert store.read(lambda: (Artist.select().count(), Track.select().count())).result() == (5, 7)
