"""Catalogs that others published go in without `--map`, whatever file they come in."""

import csv
import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from itertools import islice
from pathlib import Path

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Track
from tests.store.importing.test_histories import SAMPLES
from tests.support.catalog_import import counts, dump
from tests.support.import_files import import_file
from tests.support.workbooks import Rows, write_xlsx

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

Find = Callable[[str], Path]
Row = Mapping[str, str]
# For each column: its name among the tag variables of MusicBrainz Picard, and in the database of MusicBrainz.
COLUMNS = (
    ("title", "recording_name"),
    ("artist", "artist_credit_name"),
    ("album", "release_name"),
    ("albumartist", "release_artist"),
    ("date", "release_date"),
    ("tracknumber", "position"),
    ("discnumber", "medium_position"),
    ("length", "length"),
    ("isrc", "isrc"),
    ("barcode", "barcode"),
    ("musicbrainz_recordingid", "recording_gid"),
    ("musicbrainz_albumid", "release_gid"),
)
FIELDS = {
    *("track", "artist", "album", "album_artist", "release_date", "track_number", "disc_number", "duration_ms", "isrc"),
    *("upc", "external_id", "album_external_id"),
}


def joined(find: Find) -> Iterator[tuple[str, ...]]:
    """Yield a row of COLUMNS for each track of the sample, joined from its tables."""

    def table(name: str, key: str = "id") -> dict[str, Row]:
        with find(f"musicbrainz_sample/{name}.tsv").open(encoding="utf-8", newline="") as file:
            return {row[key]: row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}

    recordings, media, releases, artists = map(table, ("recording", "medium", "release", "artist_credit"))
    isrcs, dates = table("isrc", "recording"), table("release_country", "release")
    for track in table("track").values():
        recording, medium = recordings[track["recording"]], media[track["medium"]]
        release = releases[medium["release"]]
        day = dates.get(release["id"], {})
        yield (
            recording["name"],
            artists[recording["artist_credit"]]["name"],
            release["name"],
            artists[release["artist_credit"]]["name"],
            "-".join(f"{int(part):02}" for each in ("year", "month", "day") if (part := day.get(f"date_{each}"))),
            track["position"],
            medium["position"],
            recording["length"],
            isrcs.get(recording["id"], {}).get("isrc", ""),
            release["barcode"],
            recording["gid"],
            release["gid"],
        )


@pytest.mark.slow
@pytest.mark.parametrize("naming", [0, 1], ids=["Picard", "MusicBrainz"])
def test_the_sample_of_musicbrainz_goes_in_without_map(
    store: Store, shared_data: Find, tmp_path: Path, naming: int
) -> None:
    rows = [tuple(names[naming] for names in COLUMNS), *joined(shared_data)]
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    done = import_file(store, tmp_path / "a.csv", Catalog(ImportOptions()))

    assert {each.field for each in done.columns} == FIELDS
    assert done.refused == []
    taken = rows[1:]
    lengths = {row[-2]: int(row[7] or 0) for row in taken}
    albums = {row[-1] for row in taken}
    assert (done.rows, counts(done)[0], counts(done, "albums")[0]) == (228, len(lengths), len(albums))
    assert store.read(lambda: {each.external_id: each.duration for each in Track.select()}).result() == lengths

    before = dump(store)
    again = import_file(store, write_xlsx(tmp_path / "a.xlsx", rows), Catalog(ImportOptions()))
    assert (dump(store), again.refused) == (before, done.refused)


@pytest.mark.slow
def test_songs_of_spotify_go_in_without_map_from_a_workbook_as_from_csv(
    store: Store, shared_data: Find, tmp_path: Path
) -> None:
    with gzip.open(shared_data("spotify_songs/spotify_songs.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        rows = list(islice(csv.reader(file), 1001))
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as part:
        csv.writer(part).writerows(rows)
    typed: Rows = [rows[0], *([as_typed(cell) for cell in row] for row in rows[1:])]
    done = import_file(store, write_xlsx(tmp_path / "a.xlsx", typed), Catalog(ImportOptions()))
    assert (done.rows, done.refused, counts(done)[0]) == (1000, [], len({row[0] for row in rows[1:]}))
    assert sum(each.field is not None for each in done.columns) == 14

    before = dump(store)
    again = import_file(store, tmp_path / "a.csv", Catalog(ImportOptions()))
    assert (dump(store), again.refused) == (before, [])
    assert {kind: each.new + each.changed for kind, each in again.counts.items()} == dict.fromkeys(again.counts, 0)


def as_typed(cell: str) -> object:
    """Return a cell as a spreadsheet takes it that is typed in."""
    for kind in (int, float, date.fromisoformat):
        with suppress(ValueError):
            return cell if cell.isalpha() else kind(cell)  # "Infinity" is a name
    return cell


def test_every_sample_of_a_history_has_a_test(shared_data: Find) -> None:
    others = {"lastfm_loved_tracks_1.json", "librefm_no_header.csv"}  # no plays, no names of columns
    assert {each.name for each in shared_data("import_formats").iterdir()} == SAMPLES.keys() | others
