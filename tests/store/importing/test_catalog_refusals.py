"""Rows and files that `import catalog` refuses, and the limits of fields."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import (
    Track,
)
from tests.support.bounds import Bounds
from tests.support.catalog_import import counts, dump, import_rows, only
from tests.support.import_files import Import, import_file
from tests.support.refused_rows import reasons


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    return partial(import_rows, store, tmp_path / "rows.jsonl")


CONTROLS = [*"\x01\x02\x03\x07\x0b\x1b\x7f\x85\x9f"]
ISRC = "must be an ISRC: two letters, three letters or digits, seven digits, such as GBAYE6800011"
# Faulty cells, what is said of them, and the kind of item that counts as refused.
FAULTS: list[tuple[dict[str, object], str, str]] = [
    ({"track": " "}, "track is missing", "tracks"),
    ({"track": "x" * 256}, "track must not be longer than 255 characters", "tracks"),
    ({"track": "a\0"}, "track must not contain a NUL character", "tracks"),
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
    ({"release_date": "2023-02-29"}, "release_date must be a date that exists", "tracks"),
    ({"duration_ms": 86_400_001}, "duration_ms must be between 0 and 86,400,000", "tracks"),
    ({"duration_ms": "3:12"}, "duration_ms must be a number", "tracks"),
    ({"genre": "***"}, "genre must contain a letter or a digit", "genres"),
    ({"genre": "x" * 61}, "genre must not be longer than 60 characters", "genres"),
    ({"tags": ["x" * 61]}, "tags must not be longer than 60 characters", "tracks"),
    ({"tags": [f"t{n}" for n in range(21)]}, "tags holds more than 20 tags", "tracks"),
    ({"bpm": "fast"}, "bpm must be a number", "tracks"),
    ({"key": "H"}, "key must be a note (C, C#, … B) or a number from 0 to 11", "tracks"),
    ({"scale": "Dorian"}, "scale must be Major or Minor, or 1 or 0", "tracks"),
    ({"image": "cover.jpg"}, "image must be an absolute http or https URL", "tracks"),
    ({"description": "x" * 10_001}, "description must not be longer than 10,000 characters", "tracks"),
    ({"isrc": "GBAYE680001"}, f"isrc {ISRC}", "tracks"),
    ({"isrc": "x" * 41}, "isrc must not be longer than 40 characters", "tracks"),
    ({"isrc": "x" * 40}, f"isrc {ISRC}", "tracks"),
    ({"track_number": 0}, "track_number must be between 1 and 9,999", "tracks"),
    ({"track_number": 10_000}, "track_number must be between 1 and 9,999", "tracks"),
    ({"disc_number": 0}, "disc_number must be between 1 and 999", "tracks"),
    ({"disc_number": 1000}, "disc_number must be between 1 and 999", "tracks"),
    ({"explicit": "?"}, "explicit must be true or false", "tracks"),
    ({"upc": "0" * 41}, "upc must not be longer than 40 characters", "albums"),
    ({"label": "x" * 256}, "label must not be longer than 255 characters", "albums"),
    ({"bpm": "x", "track": None}, "track is missing; bpm must be a number", "tracks"),
    ({"bpm": "x", "label": "x" * 256, "album": "x" * 256},
     "album must not be longer than 255 characters; bpm must be a number; label must not be longer than 255 characters",
     "albums"),
]  # fmt: skip


def test_a_row_is_refused_by_its_line_with_the_reason_and_the_rest_goes_in(store: Store, imported: Import) -> None:
    sound = {"track": "T", "artist": "A"}
    summary = imported([sound, *(sound | cells for cells, _, _ in FAULTS), {**sound, "track": "U"}])
    assert reasons(summary) == [(line, reason) for line, (_, reason, _) in enumerate(FAULTS, 2)]
    refused = Counter(kind for _, _, kind in FAULTS)
    assert {kind: counts(summary, kind)[3] for kind in summary.counts} == refused
    assert {field for _, reason, _ in FAULTS for field in [reason.split()[0]]} == set(rows.FIELDS) - set(rows.LATER)
    assert sorted(row[1] for row in dump(store)["Track"]) == ["T", "U"]


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
    assert summary.notes["bpm_dropped"] == 1
    assert (only(store, Track).bpm, only(store, Track).duration) == (None, 0)


def test_a_track_holds_twenty_tags_at_most(store: Store, imported: Import) -> None:
    tagged = [{"track": "T", "artist": "A", "tags": [f"{part}{n}" for n in range(15)]} for part in "ab"]
    assert imported(tagged).notes["tags_dropped"] == 10
    assert len(dump(store)["TrackTag"]) == 20
    assert counts(imported(tagged)) == (0, 0, 2, 0)


def test_a_file_that_breaks_off_leaves_whole_batches(store: Store, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=2)
    file = tmp_path / "broken.csv"
    file.write_bytes(b"track,artist\n" + b"".join(b"t%d,a\n" % n for n in range(5)) + b"\xff,a\n")
    with pytest.raises(Failure) as failed:
        import_file(store, file, Catalog(ImportOptions()))
    assert failed.value.message == f"{file}: line 7 is not UTF-8; save the file as CSV UTF-8, or as an Excel workbook."
    assert len(dump(store)["Track"]) == 4


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
