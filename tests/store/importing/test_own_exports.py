"""Exports of tracks come back: they change nothing in their own catalog, and fill an empty one with the same tracks."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure
from musicsvc.reports.formats import FORMATS
from musicsvc.server.shapes import exports
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.insights import export_rows
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT, window
from musicsvc.store.plays.rollups import listeners
from musicsvc.wording import name_problem
from tests.conftest import NOW
from tests.support import dumps
from tests.support.catalog_import import dump
from tests.support.examples import examples
from tests.support.import_files import quiet

FORMS = ("csv", "json", "xlsx", "parquet")
ISRCS = ["GBAYE6800011", "USRC17607839", "DEZ992400001", "DEZ992400004"]
UPCS = ["036000291452", "4006381333931", "0036000291452"]

# fmt: off
ODD = [
    "Rag", "=1+1", "'=1+1", "''=1", "-3", "007", "1e5", "TRUE", "null", "NA", "2026-01-02", "a\r\nb", "a\n=b",
    "_x0041_", "_x000D_", "\U0001f600" * 255, "x" * 255, "e\u0301", "\xe9", '="007"', '"', "'", "a;b", "Ann; Bea",
    "(deleted tracks)",
]
# fmt: on
signs = some.sampled_from("ab =+-@'\"\t\n\r,.|\xe9\u0301\u200b\xa0\u2019\uff1d_x\u2028")
characters = some.one_of(signs, some.characters(exclude_categories=["Cs", "Cc"]))
texts = some.one_of(some.sampled_from(ODD), some.text(characters, min_size=1, max_size=12).map(str.strip)).filter(
    lambda text: text and name_problem(text) is None
)
artist_names = texts.filter(lambda text: ";" not in text)
dates = some.one_of(some.none(), some.dates().map(str))


class Record(NamedTuple):
    """An album or a track to be made. `artists`: places in the list of artists."""

    name: str
    artists: Sequence[int]
    date: str | None
    code: str | None
    label: str | None = None
    album: int | None = None
    external_id: str | None = None


Made = tuple[Sequence[str], Sequence[Record], Sequence[Record]]


@some.composite
def catalogs(draw: some.DrawFn) -> Made:
    artists = draw(some.lists(artist_names, min_size=1, max_size=4, unique_by=name_key))
    credit = some.lists(some.integers(0, len(artists) - 1), min_size=1, max_size=3, unique=True)
    ids = some.one_of(some.none(), some.sampled_from(["007", "=1", "T-1", "7", "1e5"]))
    upcs = some.one_of(some.none(), some.sampled_from(UPCS))
    album = some.builds(Record, texts, credit, dates, upcs, some.one_of(some.none(), texts), some.none(), ids)
    albums = draw(
        some.lists(
            album,
            max_size=3,
            unique_by=(
                lambda each: (each.artists[0], name_key(each.name)),
                lambda each: (each.code or "").lstrip("0") or id(each),
                lambda each: each.external_id or id(each),
            ),
        )
    )
    on = some.one_of(some.none(), *([some.integers(0, len(albums) - 1)] if albums else []))
    isrcs = some.one_of(some.none(), some.sampled_from(ISRCS))
    track = some.builds(Record, texts, credit, dates, isrcs, some.none(), on, ids)
    tracks = draw(
        some.lists(
            track,
            min_size=1,
            max_size=6,
            unique_by=(
                lambda each: (frozenset(each.artists), name_key(each.name), each.album),
                lambda each: each.code or id(each),
                lambda each: each.external_id or id(each),
            ),
        )
    )
    return artists, albums, tracks


def make(artists: Sequence[str], albums: Sequence[Record], tracks: Sequence[Record]) -> None:
    people = [Artist.create(name=name, created_at=NOW).id for name in artists]
    homes = []
    for each in albums:
        album = Album.create(
            name=each.name,
            release_date=each.date,
            upc=each.code,
            label=each.label,
            external_id=each.external_id,
            created_at=NOW,
        )
        homes.append(album.id)
        for at, artist in enumerate(each.artists):
            AlbumArtist.create(album=album.id, artist=people[artist], position=at)
    for each in tracks:
        home = None if each.album is None else homes[each.album]
        # An import gives an album without a date that of its first track with one.
        date = each.date if each.album is None or albums[each.album].date else None
        track = Track.create(
            name=each.name,
            duration=0,
            release_date=date,
            isrc=each.code,
            album=home,
            external_id=each.external_id,
            created_at=NOW,
        )
        for at, artist in enumerate(each.artists):
            TrackArtist.create(track=track.id, artist=people[artist], position=at)


def clear(store: Store) -> None:
    def unit() -> None:
        for table in (Track, Album, Artist):
            table.delete().execute()

    store.write(unit).result()


def export(store: Store, form: str, kind: str = "tracks") -> bytes:
    def read() -> bytes:
        days = window("30-days", NOW)
        with export_rows.cells(kind, Scope(), days) as rows:
            write = FORMATS[form].write_table
            assert write is not None
            return b"".join(write(exports.table(kind, Scope(), days, NOW, rows, FORMATS[form])))

    return store.read(read).result()


def import_export(store: Store, file: Path, **options: Any) -> ImportSummary:
    with closing(readers.open_file(file)) as reader:
        return runner.run(store, reader, Catalog(ImportOptions(**options)), now=NOW, on_progress=quiet)


def without_ids(store: Store) -> list[dict[str, Any]]:
    return [row | {"track_id": 0} for row in json.loads(export(store, "json"))["data"]["rows"]]


def require_back(store: Store, file: Path, made: Made) -> None:
    """Require that the export of this catalog changes nothing in it, and fills an empty one with the same tracks."""
    store.write(lambda: make(*made)).result()
    file.write_bytes(export(store, file.suffix[1:]))
    rows, before = without_ids(store), dump(store)
    found = import_export(store, file)
    assert (found.refused, found.left_out) == ([], {})
    assert dump(store) == before
    assert {kind: (each.new, each.changed) for kind, each in found.counts.items()} == dict.fromkeys(
        found.counts, (0, 0)
    )
    clear(store)
    found = import_export(store, file)
    assert (found.refused, found.left_out) == ([], {})
    assert without_ids(store) == rows


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(made=catalogs())
def test_an_export_changes_nothing_in_its_catalog_and_fills_an_empty_one(
    store: Store, tmp_path: Path, form: str, made: Made
) -> None:
    clear(store)
    require_back(store, tmp_path / f"tracks.{form}", made)


def test_a_compilation_dates_and_names_like_formulas_come_back(store: Store, tmp_path: Path) -> None:
    artists = ["Various", "=1+1", "'=1+1", '="007"']
    albums = [
        Record("Hits", [0], "2001-02-03", None, "-3"),
        Record("Weezer", [1], "2001-05-15", UPCS[0]),
        Record("Weezer", [1], "1994-05-10", UPCS[1]),
        *(Record("Same", [1], None, None, external_id=each) for each in ("A-1", "A-2")),
    ]
    tracks = [
        Record("Rag", [1], None, None, album=0),
        Record("Rag", [2, 3], "1999-01-02", None, album=0),
        Record("a\n@b", [1], "1994-05-10", None, album=1),
        Record("a\n@b", [1], None, None, album=2),
        Record("(deleted tracks)", [0], None, None),
        Record("Rag", [1], None, None, album=3, external_id="007"),
        Record("Rag", [1], None, None, album=4, external_id="=7"),
    ]
    require_back(store, tmp_path / "tracks.csv", (artists, albums, tracks))


def test_an_album_without_a_date_keeps_none_when_its_tracks_come_back(store: Store, tmp_path: Path) -> None:
    def fill() -> None:
        make(["Ann"], [Record("Two", [0], None, None)], [Record("Rag", [0], None, None, album=0)])
        Track.update(release_date="2001-02-03").execute()

    store.write(fill).result()
    (tmp_path / "tracks.csv").write_bytes(export(store, "csv"))
    before = dump(store)
    import_export(store, tmp_path / "tracks.csv")
    assert dump(store) == before
    (tmp_path / "tracks.csv").write_text((tmp_path / "tracks.csv").read_text().replace("2001", "2002"))
    import_export(store, tmp_path / "tracks.csv")
    album, track = store.read(lambda: (Album.get().release_date, Track.get().release_date)).result()
    assert (album, track) == ("2002-02-03", "2002-02-03")


def test_plays_of_deleted_tracks_are_no_track(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "tracks.csv"
    file.write_text('"track_id","track","artists","plays_total"\n1,"Rag","Ann",2\n,"(deleted tracks)","",3\n')
    found = import_export(store, file)
    assert (found.counts["tracks"].new, found.notes["deleted"], found.refused) == (1, 1, [])


@pytest.mark.parametrize("form", ["csv", "json", "xlsx"])
@pytest.mark.parametrize("kind", ["albums", "artists", "plays"])
def test_exports_whose_rows_are_no_tracks_are_refused(store: Store, tmp_path: Path, kind: str, form: str) -> None:
    def fill() -> None:
        make(["Ann"], [Record("Two", [0], None, None)], [Record("Rag", [0], None, None, album=0)])
        listener = listeners.ensure(["opaque:fan"])["opaque:fan"]
        dumps.record([PlayRow(NOW // SLOT, Track.get().id, listener, WITHOUT_ID, NOW, None, 0)])

    store.write(fill).result()
    (tmp_path / f"plays.{form}").write_bytes(export(store, form, kind))
    with pytest.raises(Failure, match="an export of albums, artists or daily plays"):
        import_export(store, tmp_path / f"plays.{form}")


def test_rules_that_divide_names_are_not_of_exports(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "tracks.csv"
    file.write_text("track,artists\nRag,Ann & Bob\n")
    import_export(store, file, divide=("artists=&",))
    clear(store)
    require_back(store, file, (["Simon & Garfunkel"], [], [Record("Cecilia", [0], None, None)]))


def test_a_compilation_of_more_artists_than_a_track_may_have_comes_back(store: Store, tmp_path: Path) -> None:
    artists = [f"Artist {number}" for number in range(60)]
    tracks = [Record("Rag", [number], None, None, album=0) for number in range(10, 60)]
    require_back(store, tmp_path / "tracks.csv", (artists, [Record("Hits", range(60), None, None)], tracks))
    assert store.read(AlbumArtist.select().count).result() == 60
