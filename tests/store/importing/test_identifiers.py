"""ISRC, UPC, label, album artist, numbers and parental advisory in imports of catalogs and plays."""

from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import SECOND
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.cells import codes, words
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions, Kind
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, AlbumArtist, Artist, Play, Track
from tests.conftest import NOW
from tests.support.import_files import Import, Rows, import_file
from tests.support.refused_rows import reasons

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

LABEL = "label@label.test"
CODE, OTHER, THIRD = "GBAYE6800011", "USX9X2400001", "DEA123456789"


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    """Imports rows as a catalog or as plays."""

    def run(rows: Rows, kind: type[Kind[Any]] = Catalog, **options: Any) -> ImportSummary:
        chosen = ImportOptions(**({"listener": "me"} | options))
        return import_file(store, tmp_path / "rows.jsonl", kind(chosen), rows)

    return run


def tracks(store: Store) -> list[tuple[Any, ...]]:
    columns = (Track.id, Track.name, Track.isrc)
    return store.read(lambda: list(Track.select(*columns).order_by(Track.id).tuples().iterator())).result()


def tally(summary: ImportSummary) -> tuple[int, int, int, int]:
    found = summary.counts["tracks"]
    return found.new, found.changed, found.repeated, found.refused


@pytest.mark.parametrize(
    ("parse", "value", "found"),
    [
        (codes.isrc, "GBAYE6800011", CODE),
        (codes.isrc, " gb-aye-68-00011 ", CODE),
        (codes.isrc, "US-X9X-24-00001", OTHER),
        (codes.isrc, " ", None),
        (codes.upc, "036000291452", "036000291452"),
        (codes.upc, "4006381333931", "4006381333931"),
        (codes.upc, 4006381333931, "4006381333931"),
        (codes.upc, 36000291452.0, "036000291452"),
        (codes.upc, "36000291452", "036000291452"),
        (words.flag, "Explicit", True),
        (words.flag, 1.0, True),
        (words.flag, "clean", False),
        (words.flag, False, False),
        (words.flag, "", None),
    ],
)
def test_identifiers_are_taken_in_their_usual_spellings(parse: Any, value: object, found: object) -> None:
    assert parse(value) == found


@pytest.mark.parametrize(
    ("parse", "value", "reason"),
    [
        (codes.isrc, "GBAYE680001", "must be an ISRC"),
        (codes.isrc, "1BAYE6800011", "must be an ISRC"),
        (codes.isrc, "GBAYE680001x", "must be an ISRC"),
        (codes.upc, "036000291453", "check digit of 036000291453 is wrong"),
        (codes.upc, "4006381333930", "check digit of 4006381333930 is wrong"),
        (codes.upc, "36000291453", "check digit of 036000291453 is wrong"),
        (codes.upc, "3600029145x", "12 or 13 digits"),
        (codes.upc, "10036000291452", "12 or 13 digits"),
        (codes.upc, "7.24385E+11", "was rounded by the spreadsheet"),
        (codes.upc, "7,24E11", "was rounded by the spreadsheet"),
        (words.flag, "maybe", "must be true or false"),
        (words.flag, 2, "must be true or false"),
    ],
)
def test_other_texts_are_refused_with_the_rule(parse: Any, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(value)


def test_every_field_goes_where_it_belongs_and_a_second_run_changes_nothing(store: Store, imported: Import) -> None:
    row = {"track": "A", "artist": "Ann", "album": "One", "album_artist": "Various; Bea", "isrc": "gb-aye-68-00011"}
    more = {"track_number": "3", "disc_number": 2.0, "explicit": "no", "upc": "036000291452", "label": " Blue "}
    rows = [row | more, {"track": "B", "artist": "Cleo", "album": "One", "album_artist": "Various", "explicit": 1}]
    for new in (2, 0):
        assert tally(imported(rows))[:2] == (new, 0)
        first, second = store.read(lambda: list(Track.select().order_by(Track.id))).result()
        assert (first.isrc, first.track_number, first.disc_number, first.explicit) == (CODE, 3, 2, False)
        assert (second.isrc, second.track_number, second.explicit) == (None, None, True)
        (album,) = store.read(lambda: list(Album.select())).result()
        assert (album.upc, album.label, first.album, second.album) == ("036000291452", "Blue", album.id, album.id)

        def credit() -> list[Any]:
            query = AlbumArtist.select(Artist.name).join(Artist).order_by(AlbumArtist.position)
            return [name for (name,) in query.tuples().iterator()]

        assert store.read(credit).result() == ["Various", "Bea", "Ann", "Cleo"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_row_without_an_external_id_is_the_track_with_its_isrc(
    store: Store, imported: Import, *, dry_run: bool
) -> None:
    imported([{"track": "A", "artist": "Ann", "isrc": CODE}, {"track": "Bare", "artist": "Ann"}])
    rows = [
        {"track": "A (remastered)", "artist": "Ann;Bea", "isrc": CODE},  # by its ISRC
        {"track": "A (remastered)", "artist": "Ann;Bea", "isrc": OTHER},  # of that name, but with another ISRC
        {"track": "Bare", "artist": "Ann", "isrc": THIRD},  # by its name, which had no ISRC
        {"track": "Whatever", "artist": "Ann", "isrc": THIRD},
    ]
    assert tally(imported(rows, dry_run=dry_run)) == (1, 2, 1, 0)
    if not dry_run:
        assert [more for _, *more in tracks(store)] == [
            ["A (remastered)", CODE],
            ["Bare", THIRD],
            ["A (remastered)", OTHER],
        ]


def test_codes_that_are_moved_to_another_track_and_album_are_of_one_each(store: Store, imported: Import) -> None:
    upcs = ["036000291452", "4006381333931"]
    rows = [{"track": name, "artist": "Ann", "album": name, "upc": upcs[0], "isrc": CODE} for name in "ABCD"]
    ids = [{"external_id": name, "album_external_id": name} for name in "ABC"]
    imported([rows[0] | ids[0]])
    changed = rows[0] | ids[0] | {"isrc": OTHER, "upc": upcs[1]}
    summary = imported([changed, rows[1] | ids[1], rows[2] | ids[2], rows[3]])
    assert reasons(summary) == [(3, f"another track has this ISRC: {CODE}")]
    assert tally(summary) == (1, 1, 1, 1)
    assert [more for _, *more in tracks(store)] == [["A", OTHER], ["B", CODE]]
    albums = store.read(lambda: [*Album.select(Album.name, Album.upc).order_by(Album.id).tuples()]).result()
    assert albums == [("A", upcs[1]), ("B", upcs[0])]


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_isrc_is_of_one_track_of_a_manager(store: Store, imported: Import, *, dry_run: bool) -> None:
    store.write(lambda: users.create(LABEL, now=NOW).id).result()
    rows = [
        {"track": "A", "artist": "Ann", "isrc": CODE, "external_id": "1"},
        {"track": "B", "artist": "Ann", "isrc": CODE, "external_id": "2"},
        {"track": "C", "artist": "Ann", "external_id": "3"},
    ]
    summary = imported(rows, dry_run=dry_run)
    assert reasons(summary) == [(2, f"another track has this ISRC: {CODE}")]
    assert tally(summary) == (2, 0, 0, 1)
    if not dry_run:
        assert tally(imported(rows[:1], user=LABEL)) == (1, 0, 0, 0)
        assert [more for _, *more in tracks(store)] == [["A", CODE], ["C", None], ["A", CODE]]


def test_plays_are_matched_by_isrc_and_those_of_the_manager_go_first(store: Store, imported: Import) -> None:
    store.write(lambda: users.create(LABEL, now=NOW).id).result()
    imported([{"track": "A", "artist": "Ann", "isrc": CODE}, {"track": "B", "artist": "Bea"}])
    imported([{"track": "A", "artist": "Ann", "isrc": CODE}], user=LABEL)
    at = NOW // SECOND - 600
    rows = [
        {"isrc": "gb-aye-68-00011", "played_at": at},
        {"isrc": OTHER, "artist": "Bea", "track": "B", "played_at": at},
        {"isrc": OTHER, "played_at": at},
        {"isrc": "x", "artist": "Bea", "track": "B", "played_at": at},
    ]
    summary = imported(rows, Plays)
    assert [line for line, _ in reasons(summary)] == [3]
    assert [(each.line, each.example) for each in summary.left_out.values()] == [(4, "x")]
    assert reasons(summary)[0][1] == f"no track has this ISRC; import the catalog first: {OTHER}"
    imported([{"isrc": CODE, "played_at": at - 60}], Plays, user=LABEL)
    again = imported([{"isrc": CODE, "played_at": at}], Plays, user=LABEL)
    assert again.counts["plays"].repeated == 1
    assert sorted(store.read(lambda: [play.track for play in Play.select()]).result()) == [1, 2, 3]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_track_made_for_a_play_has_its_isrc(store: Store, imported: Import, *, dry_run: bool) -> None:
    rows = [{"isrc": CODE, "artist": "New", "track": name, "played_at": NOW // SECOND - 60} for name in ("A", "Else")]
    summary = imported([rows[0], rows[1]], Plays, create_missing=True, dry_run=dry_run)
    assert (summary.counts["tracks"].new, summary.counts["plays"].new) == (1, 1)
    assert tracks(store) == ([] if dry_run else [(1, "A", CODE)])
