"""`import playlists` in the store: matching of playlists and tracks, order, refused rows."""

import json
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure, Invalid, NotFound
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.runner import ImportOptions, Kind, Pace
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Artist, Playlist, PlaylistTrack, Track, TrackArtist
from musicsvc.store.playlists import playlists as store_playlists
from musicsvc.store.security.security_events import Actor
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.import_files import Import, Rows, import_file
from tests.support.refused_rows import reasons

ANN, BEN = "ann@a.test", "ben@a.test"


@pytest.fixture
def people(store: Store) -> dict[str, int]:
    return store.write(lambda: {email: users.create(email, now=1).id for email in (ANN, BEN)}).result()


@pytest.fixture
def imported(store: Store, tmp_path: Path, people: dict[str, int]) -> Import:
    assert people

    def run(rows: Rows, manager: str = ANN, **options: Any) -> ImportSummary:
        return import_file(store, tmp_path / "rows.jsonl", Playlists(ImportOptions(user=manager, **options)), rows)

    return run


def track(store: Store, name: str, *artists: str, manager: int | None = None, **values: Any) -> int:
    """Create a track of new artists; its external id is its name in lower case."""

    def make() -> int:
        album = values.pop("album", None)
        album_id = album and Album.create(name=album, created_at=1).id
        given = {"external_id": name.lower(), "imported_for": manager or 0} | values
        made = Track.create(name=name, duration=1, created_at=1, album=album_id, **given)
        for at, artist in enumerate(artists or ("A",)):
            by = Artist.create(name=artist, manager=manager, created_at=1)
            TrackArtist.create(track=made.id, artist=by.id, position=at)
        return int(made.id)

    return store.write(make).result()


def row(playlist: str, external_id: str, playlist_id: str | None = None) -> dict[str, object]:
    return {"playlist": playlist, "external_id": external_id, "playlist_external_id": playlist_id}


def counts(summary: ImportSummary, kind: str = "entries") -> tuple[int, int, int, int]:
    found = summary.counts[kind]
    return found.new, found.changed, found.repeated, found.refused


def kept(store: Store) -> list[tuple[str, str | None, list[int]]]:
    """Return the name, external id and tracks of every playlist, the oldest first."""

    def read() -> list[tuple[str, str | None, list[int]]]:
        entries = list(PlaylistTrack.select().order_by(PlaylistTrack.id))
        return [
            (each.name, each.external_id, [entry.track for entry in entries if entry.playlist == each.id])
            for each in Playlist.select().order_by(Playlist.id)
        ]

    return store.read(read).result()


def test_tracks_stand_in_the_order_of_the_rows_and_each_once(store: Store, imported: Import) -> None:
    first, second = track(store, "T"), track(store, "U")
    rows = [row("P", "u"), row("Q", "t"), row("P", "t"), row("P", "u")]
    summary = imported(rows)
    assert (counts(summary), counts(summary, "playlists")) == ((3, 0, 1, 0), (2, 0, 2, 0))
    assert kept(store) == [("P", None, [second, first]), ("Q", None, [first])]


def test_a_second_run_changes_nothing_and_a_longer_file_appends(store: Store, imported: Import) -> None:
    first, second = track(store, "T"), track(store, "U")
    imported([row("P", "t")])
    assert counts(imported([row("P", "t")])) == (0, 0, 1, 0)
    summary = imported([row("P", "u"), row("P", "t")])
    assert (counts(summary), counts(summary, "playlists")) == ((1, 0, 1, 0), (0, 1, 1, 0))
    assert kept(store) == [("P", None, [first, second])]


@pytest.mark.usefixtures("people")
def test_an_upload_fills_a_playlist_as_the_api_does_and_a_file_of_the_operator_has_any_number(
    store: Store, tmp_path: Path, bounds: Bounds
) -> None:
    bounds(most_in_playlist=3)
    made = [track(store, name) for name in "TUVWX"]
    file = tmp_path / "rows.jsonl"

    def run(rows: Rows, actor: Actor) -> ImportSummary:
        file.write_text("".join(json.dumps(each) + "\n" for each in rows))
        with closing(readers.open_file(file, "jsonl")) as reader:
            kind = Playlists(ImportOptions(user=ANN))
            return runner.run(store, reader, kind, now=1, on_progress=lambda _: None, pace=Pace(2), actor=actor)

    rows = [row("P", each) for each in ("t", "u", "t", "v", "w", "u", "x")] + [row("Q", "x")]
    summary = run(rows, "page")
    assert (counts(summary), counts(summary, "playlists")) == ((4, 0, 2, 2), (2, 0, 4, 0))
    full = "a playlist has at most 10,000 tracks"
    assert [(each.line, each.reason) for each in summary.refused] == [(5, full), (7, full)]
    assert kept(store) == [("P", None, made[:3]), ("Q", None, made[4:])]
    assert counts(run(rows, "cli")) == (2, 0, 6, 0)
    assert kept(store)[0] == ("P", None, made)


def test_a_track_that_is_made_while_the_import_runs_is_found(
    store: Store, tmp_path: Path, people: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Playlists, "rows_a_unit", 1)
    first = track(store, "T")
    named: dict[str, object] = {"playlist": "P", "artist": "B", "track": "Later"}
    made: list[int] = []

    def make(summary: ImportSummary) -> None:
        if summary.rows == 1:
            made.append(track(store, "Later", "B", manager=people[BEN]))

    rows = [row("P", "t"), named, named]
    summary = import_file(store, tmp_path / "p.jsonl", Playlists(ImportOptions(user=ANN)), rows, on_progress=make)
    assert (counts(summary), kept(store)) == ((2, 0, 1, 0), [("P", None, [first, *made])])


def test_playlists_are_the_same_by_id_and_only_without_one_by_name(store: Store, imported: Import) -> None:
    first, second = track(store, "T"), track(store, "U")
    imported([row("P", "t", "1"), row("P", "t", "2"), row("renamed", "u", "1"), row("P", "u")])
    assert kept(store) == [("P", "1", [first, second]), ("P", "2", [first])]
    store.write(lambda: Playlist.create(owner=1, name="P", created_at=1).id).result()
    imported([row("P", "u")])
    assert kept(store)[-1] == ("P", None, [second])


def test_playlists_of_others_are_left_alone(store: Store, imported: Import) -> None:
    track(store, "T")
    imported([row("P", "t", "1")], manager=BEN)
    imported([row("P", "t", "1"), row("P", "t")])
    owners = store.read(lambda: [each.owner for each in Playlist.select().order_by(Playlist.id)]).result()
    assert owners == [2, 1]


def test_what_is_made_is_private_unless_told_and_what_is_there_stays_so(store: Store, imported: Import) -> None:
    track(store, "T")
    imported([row("P", "t"), row("Q", "t", "q")])
    imported([row("P", "t"), row("Q", "t", "q"), row("R", "t"), row("S", "t", "s")], public=True)
    public = store.read(lambda: {each.name: each.public for each in Playlist.select()}).result()
    assert public == {"P": False, "Q": False, "R": True, "S": True}


def test_an_external_id_means_first_what_is_the_managers_then_nobodys_then_the_oldest(
    store: Store, imported: Import, people: dict[str, int]
) -> None:
    bens = track(store, "T", manager=people[BEN])
    imported([row("1", "t")])
    nobodys = track(store, "T")
    imported([row("2", "t")])
    anns = track(store, "T", manager=people[ANN])
    imported([row("3", "t")])
    assert [tracks for _, _, tracks in kept(store)] == [[bens], [nobodys], [anns]]


def test_a_track_is_found_by_all_its_artists_its_name_and_its_album(
    store: Store, imported: Import, people: dict[str, int]
) -> None:
    both = track(store, "T", "A", "B", external_id=None)
    old = track(store, "T", "A", external_id=None)
    live = track(store, "T", "A", external_id=None, album="Live")
    anns = track(store, "U", "A", external_id=None, manager=people[ANN])
    named = {"playlist": "P", "track": "T", "artist": "A"}
    summary = imported(
        [
            named | {"artist": "B; A"},
            named,
            named | {"album": "Live"},
            named | {"track": "U", "album": "unheard of"},
            named | {"artist": "B", "playlist": "Q"},
            named | {"track": "u"},
            named | {"artist": "A & B"},
            named | {"artist": "C"},
        ]
    )
    assert kept(store) == [("P", None, [both, old, live, anns]), ("Q", None, [both])]
    unknown = "no such track; import the catalog first"
    divided = f"{unknown}, or divide its artists with --divide"
    assert reasons(summary) == [(7, f"{divided}: 'T' by A & B"), (8, f"{unknown}: 'T' by C")]


def test_a_track_is_found_by_its_id_then_by_its_isrc_then_by_its_names(store: Store, imported: Import) -> None:
    first, second = track(store, "T", isrc="GBAYE6800011"), track(store, "U", isrc="GBAYE6800012")
    elsewhere = {"playlist": "P", "external_id": "4iV5W9uYEdYUVa79Axb7Rh", "album_artist": "A"}
    rows = [
        elsewhere | {"isrc": "GB-AYE-68-00012"},
        elsewhere | {"isrc": "GBAYE6800099", "track": "T"},
        row("P", "u") | {"isrc": "GBAYE6800011"},
        elsewhere,
        {"playlist": "P", "isrc": "GBAYE6800099"},
        {"playlist": "P", "isrc": "none"},
    ]
    summary = imported(rows)
    assert (kept(store), counts(summary)) == ([("P", None, [second, first])], (2, 0, 1, 3))
    *coded, (_, faulty) = reasons(summary)
    assert coded == [
        (4, "no track has this external_id; import the catalog first: '4iV5W9uYEdYUVa79Axb7Rh'"),
        (5, "no track has this ISRC; import the catalog first: GBAYE6800099"),
    ]
    assert faulty.startswith("isrc must be an ISRC")
    assert faulty.endswith("; track is missing; artist is missing")


def test_rows_that_name_none_get_the_playlist_and_the_artist_of_the_options(store: Store, imported: Import) -> None:
    first, second = track(store, "T"), track(store, "U")
    named = [{"track": "U"}, {"track": "T"}, {"track": "T", "playlist": "Q"}, {"track": "T", "artist": "B"}]
    for new in (3, 0):
        summary = imported(named, playlist=" P ", artist="A")
        assert (counts(summary), len(summary.refused)) == ((new, 0, 3 - new, 1), 1)
        assert kept(store) == [("P", None, [second, first]), ("Q", None, [first])]
    (refused,) = reasons(imported([row("", "t")]))
    assert refused == (1, "playlist is missing; name a playlist for the whole file with --playlist")
    for name in (" ", "x" * 251, "a\x07b"):
        with pytest.raises(Failure, match="The playlist's name"):
            imported([], playlist=name)


def test_a_row_without_an_artist_has_that_of_its_album_as_in_a_catalog(store: Store, imported: Import) -> None:
    air, both = track(store, "T", "A", external_id=None), track(store, "U", "A", "B", external_id=None)
    first = {"playlist": "P", "track": "T", "album_artist": "A"}
    faulty = {"album_artist": "x" * 256}
    rows = [
        first,
        first | {"track": "U", "featured_artist": "B"},
        first | {"album_artist": "Various Artists"},
        first | faulty | {"artist": "A"},
        row("P", "no") | faulty,
        first | faulty,
    ]
    summary = imported(rows)
    assert kept(store) == [("P", None, [air, both])]
    assert (counts(summary), summary.notes["artist_of_album"]) == ((2, 0, 1, 3), 2)
    assert [line for line, _ in reasons(summary)] == [3, 5, 6]
    assert [reason.partition(":")[0] for _, reason in reasons(summary)] == [
        "artist is missing",
        "no track has this external_id; import the catalog first",
        "artist is missing; album_artist must not be longer than 255 characters",
    ]


def test_the_managers_own_track_is_the_better_match_by_name(
    store: Store, imported: Import, people: dict[str, int]
) -> None:
    track(store, "T", manager=people[BEN])
    own = track(store, "T", manager=people[ANN])
    imported([{"playlist": "P", "track": "T", "artist": "A"}])
    assert kept(store) == [("P", None, [own])]


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        ({"external_id": "t"}, "playlist is missing; name a playlist for the whole file with --playlist"),
        ({"playlist": "P"}, "track is missing; artist is missing"),
        (
            {"playlist": "x" * 251},
            "playlist must not be longer than 250 characters; track is missing; artist is missing",
        ),
        ({"playlist": "P", "external_id": 1.5}, "external_id must be text"),
        ({"playlist": "P", "external_id": "no"}, "no track has this external_id; import the catalog first: 'no'"),
        ({"playlist": "P", "external_id": "t", "playlist_external_id": True}, "playlist_external_id must be text"),
    ],
)
def test_a_row_that_cannot_be_is_refused_and_the_rest_goes_in(
    store: Store, imported: Import, faulty: dict[str, object], reason: str
) -> None:
    first, second = track(store, "T"), track(store, "U")
    summary = imported([row("P", "t"), faulty, row("P", "u")])
    assert reasons(summary) == [(2, reason)]
    assert kept(store) == [("P", None, [first, second])]


def test_a_playlist_whose_every_row_is_refused_is_not_made(store: Store, imported: Import) -> None:
    assert counts(imported([row("P", "no")]), "playlists") == (0, 0, 0, 0)
    assert kept(store) == []


def test_an_unknown_owner_and_missing_columns_end_the_import(store: Store, imported: Import, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        imported([], manager="nobody@a.test")
    file = tmp_path / "rows.csv"
    for header, pairs, failure in (
        ("playlist,artist", (), "--map COLUMN=track"),
        ("playlist,track", (), "or the artist of all tracks with --artist NAME"),
        ("isrc,artist", (), "--map COLUMN=playlist, or the playlist of all rows with --playlist NAME"),
        ("playlist,id", ("id=song",), "There is no field 'song'"),
    ):
        file.write_text(f"{header}\nP,x\n")
        with pytest.raises((Failure, Invalid)) as raised:
            import_file(store, file, Playlists(ImportOptions(pairs, user=ANN)))
        assert failure in str(getattr(raised.value, "errors", "")) + str(raised.value)


SOME_ROWS = some.lists(
    some.builds(row, some.sampled_from(["P", "Q"]), some.sampled_from("tux"), some.sampled_from([None, "1", "2"])),
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(earlier=SOME_ROWS, rows=SOME_ROWS, size=some.integers(1, 5))
def test_a_dry_run_tells_what_comes_and_a_second_run_finds_nothing_to_do(
    store: Store, imported: Import, earlier: Rows, rows: Rows, size: int
) -> None:
    def begin() -> None:
        Playlist.delete().execute()
        Track.delete().execute()

    store.write(begin).result()
    track(store, "T"), track(store, "U")
    with pytest.MonkeyPatch.context() as patch:
        imported(earlier)
        patch.setattr(Kind, "rows_a_unit", size)
        before = kept(store)
        predicted = imported(rows, dry_run=True)
        assert kept(store) == before
        done = imported(rows)
        assert (predicted.counts, predicted.refused) == (done.counts, done.refused)
        after = kept(store)
        again = imported(rows)
        assert kept(store) == after
        assert counts(again)[0] == counts(again, "playlists")[0] == counts(again, "playlists")[1] == 0
    assert all(len(set(tracks)) == len(tracks) for _, _, tracks in after)


def test_ids_of_playlists_made_elsewhere_are_taken_up(store: Store, imported: Import, people: dict[str, int]) -> None:
    only = track(store, "T")
    store.write(lambda: store_playlists.ensure_imported(people[ANN], "1", "Mine", 1)).result()
    imported([row("Theirs", "t", "1")])
    assert kept(store) == [("Mine", "1", [only])]


@pytest.mark.usefixtures("people")
def test_the_playlists_of_spotifys_account_data_come_in(store: Store, tmp_path: Path) -> None:
    first, second = track(store, "T"), track(store, "U", external_id="4iV5W9uYEdYUVa79Axb7Rh")
    named = {"trackName": "T", "artistName": "A", "albumName": "X", "trackUri": "spotify:track:6v3KW9xbzN5yKLt9YKDYA2"}
    coded = {"trackName": "Other", "artistName": "B", "trackUri": "spotify:track:4iV5W9uYEdYUVa79Axb7Rh"}
    items = [{"track": coded, "addedDate": "2021-01-02"}, {"track": None, "episode": {"episodeName": "E"}}]
    lists = [
        {"name": "P", "lastModifiedDate": "2021-01-02", "items": items, "description": None},
        {"name": "Q", "items": [*items[:1], {"track": named}]},
        {"name": "Empty", "items": []},
    ]
    file = tmp_path / "Playlist1.json"
    for indent in (2, None):
        file.write_text(json.dumps({"playlists": lists}, indent=indent))
        summary = import_file(store, file, Playlists(ImportOptions(user=ANN)))
        assert reasons(summary) == [(2, "track is missing; artist is missing")]
        assert kept(store) == [("P", None, [second]), ("Q", None, [second, first])]
    for wrong in ([1], [{"name": "P"}], [{"name": "P", "items": [1]}], [{"items": [{"track": [1]}]}]):
        file.write_text(json.dumps({"playlists": wrong}, indent=2))
        with suppress(Failure):
            assert import_file(store, file, Playlists(ImportOptions(user=ANN))).refused
