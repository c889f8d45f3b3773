"""`import catalog` in the store: the result of rows, in a first and a second run."""

import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from musicsvc.errors import Failure, Invalid, NotFound
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Track,
    TrackArtist,
)
from tests.support.bounds import Bounds
from tests.support.catalog_import import counts, dump, import_rows, only
from tests.support.import_files import Import, import_file
from tests.support.refused_rows import reasons


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    return partial(import_rows, store, tmp_path / "rows.jsonl")


FULL = {
    "external_id": "t1",
    "track": " Trio ",
    "artist": "Clara; Robert",
    "album": "Chamber",
    "album_external_id": "a1",
    "release_date": "1846",
    "duration_ms": "1000.5",
    "genre": "Chamber Music",
    "tags": "piano; violin",
    "bpm": "99.5",
    "key": "7",
    "scale": "0",
    "image": "https://a.test/i.jpg",
    "description": "Op. 17",
}


def test_every_field_goes_where_it_belongs_and_a_second_run_changes_nothing(store: Store, imported: Import) -> None:
    summary = imported([FULL])
    assert [counts(summary, kind) for kind in summary.counts] == [
        (2, 0, 0, 0),
        (1, 0, 0, 0),
        (1, 0, 0, 0),
        (1, 0, 0, 0),
    ]
    track, album = only(store, Track), only(store, Album)
    assert (track.name, track.release_date, track.duration, track.album) == ("Trio", "1846-01-01", 1001, album.id)
    assert (track.bpm, track.key, track.scale, track.description) == (100, "G", "Minor", "Op. 17")
    assert (track.external_id, track.imported_for, track.created_at) == ("t1", 0, 7)
    assert (track.currency, track.licensing_type, track.fingerprint_status) == ("USD", "non_exclusive_only", "pending")
    assert track.image == album.image == "https://a.test/i.jpg"
    assert (album.name, album.release_date, album.external_id) == ("Chamber", "1846-01-01", "a1")
    found = dump(store)
    assert (
        [(row[1], row[2]) for row in found["TrackArtist"]]
        == [(1, 0), (2, 1)]
        == [row[1:] for row in found["AlbumArtist"]]
    )
    assert [row[1] for row in found["Artist"]] == ["Clara", "Robert"]
    assert {row[1] for row in found["Tag"]} == {"piano", "violin"}
    assert [row[1:] for row in found["Genre"]] == [("chamber-music", "Chamber Music")]
    assert summary.notes["month_padded"] == 1
    again = imported([FULL])
    assert [counts(again, kind) for kind in again.counts] == [(0, 0, 2, 0), (0, 0, 1, 0), (0, 0, 1, 0), (0, 0, 1, 0)]
    assert dump(store) == found


def test_an_artist_that_a_file_adds_comes_last_on_its_album(store: Store, imported: Import) -> None:
    rows = [{**FULL, "artist": "A; B; C; D"}, {**FULL, "external_id": "t2", "artist": "E; F"}]
    imported(rows[:1])
    store.write(lambda: AlbumArtist.delete().where(AlbumArtist.position.in_([1, 2])).execute()).result()
    imported(rows[1:])
    assert dump(store)["AlbumArtist"] == [(1, 1, 0), (1, 4, 1), (1, 5, 2), (1, 6, 3)]


def test_what_changed_in_the_file_changes_in_the_store(store: Store, imported: Import) -> None:
    imported([FULL])
    summary = imported(
        [{**FULL, "track": "Trio in g", "artist": "Robert; Clara; Joseph", "album": "Trios", "bpm": 120}]
    )
    assert (counts(summary), counts(summary, "albums")) == ((0, 1, 0, 0), (0, 1, 0, 0))
    track = only(store, Track)
    assert (track.name, track.bpm, track.key, only(store, Album).name) == ("Trio in g", 120, "G", "Trios")
    found = dump(store)
    assert [row[1:] for row in found["TrackArtist"]] == [(1, 1), (2, 0), (3, 2)]
    assert [row[1:] for row in found["AlbumArtist"]] == [(1, 0), (2, 1), (3, 2)]


def test_blank_and_missing_cells_leave_what_is_there(store: Store, imported: Import) -> None:
    imported([FULL])
    before = dump(store)
    summary = imported([{"external_id": "t1", "track": "Trio", "artist": "Clara;Robert", "bpm": "", "album": None}])
    assert counts(summary) == (0, 0, 1, 0)
    assert dump(store) == before


@pytest.mark.parametrize("days", [["0000", "2001-06-01"], ["2001-06-01", "0000"]])
def test_a_date_without_a_year_leaves_what_other_rows_say(store: Store, imported: Import, days: list[str]) -> None:
    row = {"external_id": "t", "track": "T", "artist": "A", "album": "B"}
    assert not imported([{**row, "release_date": day} for day in days]).left_out
    assert only(store, Track).release_date == only(store, Album).release_date == "2001-06-01"


def test_genres_and_tags_of_a_tracks_rows_are_united(store: Store, imported: Import) -> None:
    rows = [{"external_id": "t", "track": "T", "artist": "A", "genre": genre, "tags": tag} for genre, tag in
            [("Pop", "x"), ("ROCK; pop", "y"), ("rock", "x;z")]]  # fmt: skip
    assert counts(imported(rows)) == (1, 0, 2, 0)
    found = dump(store)
    assert (len(found["TrackGenre"]), len(found["TrackTag"])) == (2, 3)
    assert counts(imported(rows)) == (0, 0, 3, 0)
    assert counts(imported([{**rows[0], "genre": "Jazz"}])) == (0, 1, 0, 0)
    assert len(dump(store)["TrackGenre"]) == 3


def test_the_first_row_that_gives_a_field_decides_it(store: Store, imported: Import) -> None:
    row = {"external_id": "t", "artist": "A"}
    rows = [{**row, "track": "First"}, {**row, "track": "Second", "bpm": 90}, {**row, "track": "First", "bpm": 100}]
    summary = imported(rows)
    assert [(name, each.count, each.line) for (name, _), each in summary.left_out.items()] == [
        ("track", 1, 2),
        ("bpm", 1, 3),
    ]
    assert (only(store, Track).name, only(store, Track).bpm) == ("First", 90)
    assert counts(imported(rows)) == (0, 0, 3, 0)


def test_an_albums_artists_are_those_of_all_its_rows_first_seen_first(store: Store, imported: Import) -> None:
    rows = [
        {"track": "1", "artist": "B", "album": "X", "album_external_id": "x"},
        {"track": "2", "artist": "A;B", "album": "X", "album_external_id": "x"},
        {"track": "3", "artist": "C", "album": "X", "album_external_id": "x"},
    ]
    imported(rows)
    names = {row[0]: row[1] for row in dump(store)["Artist"]}
    links = sorted(dump(store)["AlbumArtist"], key=lambda link: link[2])
    assert [names[link[1]] for link in links] == ["B", "A", "C"]
    assert counts(imported(rows), "albums") == (0, 0, 3, 0)


def test_without_external_ids_albums_go_by_first_artist_and_name_and_tracks_by_artists_name_and_album(
    imported: Import,
) -> None:
    rows = [
        {"track": "T", "artist": "A;B", "album": "X"},
        {"track": "T", "artist": "B;A", "album": "X"},
        {"track": "T", "artist": "A;B", "album": "X"},
        {"track": "T", "artist": "A"},
        {"track": "T", "artist": "A", "album": "Y"},
    ]
    summary = imported(rows)
    assert counts(summary) == (4, 0, 1, 0)
    assert counts(summary, "albums") == (3, 0, 1, 0)
    assert counts(imported(rows)) == (0, 0, 5, 0)
    assert counts(imported([{**rows[3], "bpm": 77}])) == (0, 1, 0, 0)


def test_a_row_without_external_id_meets_a_track_that_has_one(store: Store, imported: Import) -> None:
    imported([{"track": "T", "artist": "A", "album": "X", "external_id": "t", "album_external_id": "x"}])
    assert counts(imported([{"track": "T", "artist": "A", "album": "X"}])) == (0, 0, 1, 0)
    other = imported([{"track": "T", "artist": "A", "album": "X", "external_id": "u", "album_external_id": "y"}])
    assert (counts(other), counts(other, "albums")) == ((1, 0, 0, 0), (1, 0, 0, 0))
    assert len(dump(store)["Track"]) == 2


def test_tracks_made_through_the_api_are_met_by_name(store: Store, imported: Import) -> None:
    def make() -> None:
        artist = Artist.create(name="A", created_at=1)
        TrackArtist.create(track=Track.create(name="T", duration=5, created_at=1), artist=artist, position=0)

    store.write(make).result()
    assert counts(imported([{"track": "T", "artist": " A "}])) == (0, 0, 1, 0)


def test_artists_differ_by_case_and_by_manager(store: Store, imported: Import) -> None:
    made = store.write(lambda: users.create("label@a.test", now=1).id).result()
    row = {"external_id": "t", "track": "T", "artist": "Same", "album": "X", "album_external_id": "x"}
    imported([row, {**row, "external_id": "u", "artist": "SAME"}])
    summary = imported([row], user="Label@A.test")
    assert [counts(summary, kind)[0] for kind in ("artists", "albums", "tracks")] == [1, 1, 1]
    found = dump(store)
    assert [row[1:6] for row in found["Artist"]][2] == ("Same", None, None, False, made)
    assert counts(imported([row], user="label@a.test")) == (0, 0, 1, 0)
    with pytest.raises(NotFound):
        imported([row], user="nobody@a.test")


def test_columns_are_mapped_and_left_out(store: Store, imported: Import) -> None:
    row = {"song": "T", "by": "A", "and": "B", "key": "not a key", "genre": "!", "tempo": 90, "popularity": 3}
    summary = imported([row], pairs=["song=track", "by=artist", "and=artist", "key=", "genre=", "tempo=bpm"])
    assert summary.left_out == {}
    assert (only(store, Track).bpm, len(dump(store)["TrackArtist"])) == (90, 2)


@pytest.mark.parametrize("pair", ["song", "=track", "song=nothing"])
def test_a_pair_that_is_none_is_refused(imported: Import, pair: str) -> None:
    with pytest.raises(Invalid):
        imported([], pairs=[pair])


def test_two_columns_cannot_fill_one_field(imported: Import) -> None:
    with pytest.raises(Invalid, match="invalid") as refused:
        imported([], pairs=["a=track", "b=track"])
    assert refused.value.errors == {"--map": "Only one column can fill the field track."}


@pytest.mark.parametrize("second", ["a=artist", "a=", "a=track"])
def test_a_column_is_mapped_once(imported: Import, second: str) -> None:
    with pytest.raises(Invalid) as refused:
        imported([], pairs=["a=track", second])
    assert refused.value.errors == {"--map": "The column 'a' is mapped twice. Map it to one field."}


def test_texts_that_stand_for_blank_are_told(imported: Import) -> None:
    row = {"track": "NA", "artist": "NA"}
    assert reasons(imported([row], blanks=["NA"])) == [(1, "track is missing; artist is missing")]
    assert counts(imported([row])) == (1, 0, 0, 0)


def test_two_imports_at_once_make_nothing_twice(store: Store, store_url: str, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=10)
    file = tmp_path / "both.csv"
    file.write_text("track,artist,genre\n" + "".join(f"t{n},a{n % 7},g{n % 5}\n" for n in range(100)))

    def run() -> None:
        with opening.connect(store_url) as mine:
            done.append(import_file(mine, file, Catalog(ImportOptions())))

    done: list[ImportSummary] = []
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts(summary)[0] for summary in done) == 100
    found = dump(store)
    assert (len(found["Track"]), len(found["Artist"]), len(found["Genre"])) == (100, 7, 5)


# Rows and files that `import catalog` refuses, and the limits of fields.

CONTROLS = [*"\x01\x02\x03\x07\x0b\x1b\x7f\x85\x9f"]
ISRC = "must be an ISRC: two letters, three letters or digits, seven digits, such as GBAYE6800011"
# Faulty cells, what is said of them, and the kind of item that counts as refused.
FAULTS: list[tuple[dict[str, object], str, str]] = [
    ({"track": " "}, "track is missing", "tracks"),
    ({"track": "x" * 256}, "track must not be longer than 255 characters", "tracks"),
    ({"track": "a\0"}, "track must not contain a NUL character", "tracks"),
    ({"track": "#N/A"}, "track is an error of a spreadsheet", "tracks"),
    ({"track": "\x1b\u200b "}, "track is missing", "tracks"),
    ({"artist": ";"}, "artist is missing", "artists"),
    ({"artist": "\u200b;\x07"}, "artist is missing", "artists"),
    ({"artist": "x" * 256}, "artist must not be longer than 255 characters", "artists"),
    ({"artist": [f"a{n}" for n in range(51)]}, "artist names more than 50 artists", "artists"),
    ({"album": "x" * 256}, "album must not be longer than 255 characters", "albums"),
    ({"album_artist": "x" * 256}, "album_artist must not be longer than 255 characters", "albums"),
    ({"album_artist": [f"a{n}" for n in range(51)]}, "album_artist names more than 50 artists", "albums"),
    ({"album_external_id": "x" * 256, "album": "L"},
     "album_external_id must not be longer than 255 characters", "albums"),
    ({"album_external_id": "x"}, "album is missing; album_external_id needs the name too", "albums"),
    ({"external_id": True}, "external_id must be text", "tracks"),
    ({"external_id": "x" * 256}, "external_id must not be longer than 255 characters", "tracks"),
    ({"bpm": "x", "track": None}, "track is missing; bpm must be a number", "tracks"),
    ({"bpm": "x", "label": "x" * 256, "album": "x" * 256},
     "album must not be longer than 255 characters; bpm must be a number; label must not be longer than 255 characters",
     "albums"),
]  # fmt: skip
# Faulty cells of optional fields, and what is said of them.
LEFT_OUT: list[tuple[dict[str, object], str]] = [
    ({"release_date": "2023-02-29"}, "must be a date that exists"),
    ({"duration_ms": 86_400_001}, "must be between 0 and 86,400,000"),
    ({"duration_ms": "3:12"}, "must be a number"),
    ({"genre": "***"}, "must contain a letter or a digit"),
    ({"genre": "x" * 61}, "must not be longer than 60 characters"),
    ({"tags": ["x" * 61]}, "must not be longer than 60 characters"),
    ({"bpm": "fast"}, "must be a number"),
    ({"key": "H"}, "must be a note (C, C#, … B) or a number from 0 to 11"),
    ({"scale": "Dorian"}, "must be Major or Minor, or 1 or 0"),
    ({"image": "cover.jpg"}, "must be an absolute http or https URL"),
    ({"description": "x" * 10_001}, "must not be longer than 10,000 characters"),
    ({"isrc": "GBAYE680001"}, ISRC),
    ({"isrc": "x" * 40}, ISRC),
    ({"explicit": "?"}, "must be true or false"),
    ({"upc": "0" * 41}, "must not be longer than 40 characters"),
    ({"label": "x" * 256}, "must not be longer than 255 characters"),
    ({"featured_artist": "x" * 256}, "must not be longer than 255 characters"),
    ({"item_type": "x" * 256}, "must not be longer than 255 characters"),
]  # fmt: skip
LEFT_OUT += [
    ({each.name: str(each.bounds[1] + 1)}, "must be between {:,} and {:,}".format(*each.bounds))
    for each in FIELDS["track"]
    if each.form == "number"
]


def test_a_row_is_refused_by_its_line_with_the_reason_and_the_rest_goes_in(store: Store, imported: Import) -> None:
    sound = {"track": "T", "artist": "A"}
    summary = imported([sound, *(sound | cells for cells, _, _ in FAULTS), {**sound, "track": "U"}])
    assert reasons(summary) == [(line, reason) for line, (_, reason, _) in enumerate(FAULTS, 2)]
    refused = Counter(kind for _, _, kind in FAULTS)
    assert Counter({kind: counts(summary, kind)[3] for kind in summary.counts}) == refused
    assert sorted(row[1] for row in dump(store)["Track"]) == ["T", "U"]


def test_a_faulty_cell_of_an_optional_field_is_left_out_and_its_row_goes_in(store: Store, imported: Import) -> None:
    given = [{"track": f"T{at}", "artist": "A", "album": "B"} | cells for at, (cells, _) in enumerate(LEFT_OUT)]
    summary = imported([*given, {"track": "T", "artist": "A", "bpm": 5}])
    assert (reasons(summary), counts(summary)[0]) == ([], len(LEFT_OUT) + 1)
    found = Counter((next(iter(cells)), reason) for cells, reason in LEFT_OUT)
    found["bpm", "must be between 20 and 400"] += 1
    assert {key: each.count for key, each in summary.left_out.items()} == found
    assert summary.left_out["bpm", "must be between 20 and 400"].example == "401"
    assert summary.left_out["genre", "must contain a letter or a digit"].line == 4
    assert {name for name, _ in found} == {*rows.FIELDS} - {*rows.LATER, *rows.IDENTIFYING}
    assert len(dump(store)["TrackGenre"]) == len(dump(store)["TrackTag"]) == 0


def test_the_limits_themselves_are_taken(store: Store, imported: Import) -> None:
    row = {
        "track": "𝄞" * 255,
        "artist": [f"a{n}" for n in range(50)],
        "duration_ms": 86_400_000,
        "genre": "g" * 60,
        "tags": [f"t{n:02}" * 20 for n in range(20)],
        "image": "http://a/" + "x" * 2039,
        "description": "x" * 10_000,
        "bpm": "400.4",
        "external_id": "x" * 255,
        "album": "l" * 255,
        "album_external_id": "y" * 255,
        "album_artist": [f"b{n}" for n in range(50)],
        "label": "z" * 255,
        "track_number": 9_999,
        "disc_number": 999,
        "isrc": " " * 20 + "GB-AYE-68-00011" + " " * 20,
    }
    assert reasons(imported([row])) == []
    track = only(store, Track)
    assert (track.bpm, track.duration, track.track_number, track.disc_number) == (400, 86_400_000, 9_999, 999)
    imported([{"track": "T", "artist": "A", "bpm": "19.5", "duration_ms": 0, "track_number": 1, "disc_number": 1}])
    found = store.read(lambda: Track.get(Track.name == "T")).result()
    assert (found.bpm, found.duration, found.track_number, found.disc_number) == (20, 0, 1, 1)


@pytest.mark.parametrize("bpm", ["0", "19.4", "400.5", "-5", "1e300"])
def test_a_tempo_out_of_bounds_is_left_out_and_counted(store: Store, imported: Import, bpm: str) -> None:
    summary = imported([{"track": "T", "artist": "A", "bpm": bpm}])
    assert [(name, each.count, each.example) for (name, _), each in summary.left_out.items()] == [("bpm", 1, bpm)]
    assert (only(store, Track).bpm, only(store, Track).duration) == (None, 0)


def test_a_track_holds_twenty_tags_at_most(store: Store, imported: Import) -> None:
    tagged = [{"track": "T", "artist": "A", "tags": [f"{part}{n}" for n in range(15)]} for part in "ab"]
    assert [(*each, left.count) for each, left in imported(tagged).left_out.items()] == [
        ("tags", "of a track are at most 20", 10)
    ]
    assert len(dump(store)["TrackTag"]) == 20
    assert counts(imported(tagged)) == (0, 0, 2, 0)


def test_a_file_that_breaks_off_leaves_whole_batches(store: Store, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=2)
    file = tmp_path / "broken.csv"
    file.write_bytes(b"track,artist\n" + b"".join(b"t%d,a\n" % n for n in range(25)) + "宇多田,a\n".encode("shift_jis"))
    with pytest.raises(Failure, match="line 27 is not UTF-8, and no guess at its encoding fits"):
        import_file(store, file, Catalog(ImportOptions()))
    assert len(dump(store)["Track"]) == 24


def test_a_row_that_is_nested_too_deep_is_refused_alone(store: Store, tmp_path: Path) -> None:
    deep = f'{{"track": "Rag", "artist": {"[" * 900}"Ann"{"]" * 900}}}\n'
    file = tmp_path / "a.jsonl"
    file.write_text(
        f'{deep}{{"track": "Waltz", "artist": "Ann", "tags": {[f"[{each}" for each in range(300)]}}}\n'.replace(
            "'", '"'
        )
    )
    summary = import_file(store, file, Catalog(ImportOptions()))
    assert reasons(summary) == [(1, "the line is nested too deep")]
    assert counts(summary) == (1, 0, 0, 1)


def test_columns_that_are_missing_are_told_before_anything_is_written(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("work,artist\nT,A\n")
    for pairs, told in (([], "No column has the track."), (["name=track"], "There is no column 'name'.")):
        with pytest.raises(Failure) as failed:
            import_file(store, file, Catalog(ImportOptions(pairs)))
        assert failed.value.message.startswith(told)
        assert "work, artist" in failed.value.message


def test_control_characters_are_left_out_of_names_and_their_rows_counted(store: Store, imported: Import) -> None:
    row = {
        "track": "A\x1b[2Ji\x07r", "artist": ["Clara\x85", "Fan\x9fny"], "album": "Tri\x0bos",
        "album_artist": "Cl\x7fara", "label": "L\x01", "genre": "Ro\x02ck", "tags": "a\x03; b",
        "description": "1\t2\r\n3",
    }  # fmt: skip
    sound = {"track": "Tab\tand\nline", "artist": "Clara"}
    for dry_run in (True, False):
        summary = imported([row, sound, {"track": "x\x1b"}], dry_run=dry_run)
        assert summary.notes["controls_dropped"] == 2, dry_run
        assert reasons(summary) == [(3, "artist is missing")]
    tracks = dump(store)["Track"]
    assert "A[2Jir" in repr(tracks)
    assert "Tab\\tand\\nline" in repr(tracks)
    found = repr(dump(store))
    assert [each for each in CONTROLS if repr(each)[1:-1] in found] == []
    assert [each for each in ("Fanny", "Trios", "Rock", "1\\t2\\r\\n3") if each not in found] == []
    assert imported([row]).counts["tracks"].repeated == 1
