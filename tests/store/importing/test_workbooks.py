"""Import of workbooks: the same catalog as from CSV, which sheet and rows are read, and files that cannot be."""

import csv
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as some
import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.files.records import TOO_LONG
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Track
from tests.support.catalog_import import counts, dump
from tests.support.import_files import import_file
from tests.support.workbooks import SECTOR, Rows, replace_member, write_ods, write_ole, write_xls, write_xlsx

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

SHEET = "xl/worksheets/sheet1.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def records(file: Path, **options: Any) -> list[tuple[int, dict[str, Any]]]:
    with readers.open_file(file, **options) as reader:
        found = [(record.line, dict(record.values)) for record in reader]
        assert reader.position == reader.size
        return found


def failure(file: Path, **options: Any) -> str:
    with pytest.raises(Failure) as failed:
        records(file, **options)
    assert "\n" not in failed.value.message
    return failed.value.message.removeprefix(f"{file} ")


HEADINGS = (
    "Title",
    "Artist",
    "Album",
    "UPC",
    "ISRC",
    "Track No",
    "Explicit",
    "Release Date",
    "BPM",
    "Genre",
    "Duration",
)
WORDS = some.text(some.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=8).filter(
    lambda text: text[0] not in "=#" and ":" not in text
)
NOTHING = some.just((None, ""))


def written(*pairs: tuple[object, str]) -> some.SearchStrategy[tuple[object, str]]:
    return some.sampled_from(pairs) | NOTHING


def word() -> some.SearchStrategy[tuple[object, str]]:
    """A cell of a name. A spreadsheet takes some names for a number, a truth value or a date."""
    taken = ((1975, "1975"), (7.5, "7.5"), (True, "TRUE"), (date(1999, 1, 1), "1999-01-01"))
    return WORDS.map(lambda text: (text, text)) | some.sampled_from(taken)


def duration(length: timedelta) -> tuple[object, str]:
    return length, str(length)


LENGTHS = some.integers(1, 5000).map(lambda seconds: timedelta(seconds=seconds))
DURATIONS = some.sampled_from(
    [
        LENGTHS.map(duration),
        LENGTHS.map(lambda length: (f"{length.seconds // 60}:{length.seconds % 60:02}",) * 2),
        LENGTHS.map(lambda length: (length.seconds, str(length.seconds))),
    ]
)
CELLS = (
    word(),
    word(),
    word() | NOTHING,
    written((36000291452, "36000291452"), ("4006381333931", "4006381333931"), (5, "5")),
    written(("GBAYE6800011", "GBAYE6800011"), ("gb-aye-68-00012", "gb-aye-68-00012")),
    written((3, "3"), (4.0, "4"), ("05", "05"), (0, "0")),
    written((True, "TRUE"), (False, "FALSE"), (1, "1"), ("nein", "nein")),
    written((date(2026, 10, 15), "2026-10-15"), (datetime(2026, 10, 15, 9, 30), "2026-10-15 09:30:00"), (1999, "1999")),  # noqa: DTZ001 - as cells are
    written((122.036, "122.036"), (90, "90"), ("fast", "fast")),
    written(("Jazz; Pop", "Jazz; Pop"), ("Rock", "Rock")),
)


@some.composite
def tables(draw: some.DrawFn) -> list[tuple[tuple[object, str], ...]]:
    rows = some.tuples(*CELLS, draw(DURATIONS) | NOTHING) | some.tuples(*[NOTHING] * len(HEADINGS))
    return draw(some.lists(rows, min_size=1, max_size=12))


@pytest.mark.slow
@given(tables(), some.permutations(["csv", "xlsx", "ods"]))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_cells_a_table_has_it_is_the_same_catalog_in_every_format(
    store: Store, tmp_path: Path, table: list[tuple[tuple[object, str], ...]], order: list[str]
) -> None:
    cells: Rows = [HEADINGS, *([cell for cell, _ in row] for row in table)]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADINGS, *([text for _, text in row] for row in table)])
    write_xlsx(tmp_path / "a.xlsx", cells)
    write_ods(tmp_path / "a.ods", cells)

    first, *others = (
        (import_file(store, tmp_path / f"a.{form}", Catalog(ImportOptions())), dump(store)) for form in order
    )
    for summary, stored in others:
        assert stored == first[1]
        assert [each[:3] for each in summary.columns] == [each[:3] for each in first[0].columns]
        assert (summary.rows, summary.refused) == (first[0].rows, first[0].refused)
        assert sum(each.new + each.changed for each in summary.counts.values()) == 0


def test_an_old_workbook_and_its_numbers_are_read(tmp_path: Path) -> None:
    file = write_xls(tmp_path / "a.xls", [("Title", "Artist", "UPC"), ("Rag", "Änn", 36000291452), (1975, "Bea", 0.5)])
    assert records(file) == [
        (2, {"Title": "Rag", "Artist": "Änn", "UPC": 36000291452}),
        (3, {"Title": 1975, "Artist": "Bea", "UPC": "0.5"}),
    ]


@pytest.mark.slow
def test_the_format_is_told_by_the_content_whatever_the_name(tmp_path: Path) -> None:
    rows = [("a", "b"), ("1", "2")]
    for write in (write_xlsx, write_ods, write_xls):
        for name in ("a.csv", "a.xls", "a"):
            assert records(write(tmp_path / name, rows)) == [(2, {"a": "1", "b": "2"})]
    (tmp_path / "a.xls").write_text("a\tb\n1\t2\n")
    assert records(tmp_path / "a.xls") == [(2, {"a": "1", "b": "2"})]


def test_titles_above_the_headings_and_empty_rows_are_left_out_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    rows = [(), (None, "Blue Label"), (None, "as of", 2026), (), (None, "Title", "Artist", None, "BPM", "Key"),
            (None, "Rag", "Ann"), (), (None, "Two", "Bea", None, 90), (None, ""), ()]  # fmt: skip
    file = write_xlsx(tmp_path / "a.xlsx", rows)
    found = records(file)
    assert [line for line, _ in found] == [6, 8]
    assert found[1][1] == {"Title": "Two", "Artist": "Bea", "(column C)": "", "BPM": 90, "Key": ""}


@pytest.mark.slow
def test_the_first_visible_sheet_with_a_table_is_read_or_the_one_that_is_named(tmp_path: Path) -> None:
    table = [("Title", "Artist"), ("Rag", "Ann")]
    file = write_xlsx(tmp_path / "a.xlsx", [], Hidden=table, Notes=[("Read me",), ("first",)], Tracks=table, Old=table)
    book = openpyxl.load_workbook(file)
    book["Hidden"].sheet_state = "hidden"
    book.save(file)
    with readers.open_file(file) as reader:
        assert reader.columns == ["Title", "Artist"]
        assert [each.what for each in reader.remarks] == ["Read the sheet Tracks, not Notes, Old."]
    with readers.open_file(file, sheet="Notes") as reader:
        assert (reader.columns, [*reader.remarks]) == (["Read me"], [])
    assert records(file, sheet="Hidden") == records(file)
    assert failure(file, sheet="Other") == "has no sheet 'Other'. Its sheets: Sheet, Hidden, Notes, Tracks, Old."
    assert failure(file, sheet="Sheet") == "is empty: no sheet has a cell."
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert failure(tmp_path / "a.csv", sheet="Old") == "has no sheets. Leave out --sheet."


def test_a_sheet_with_tracks_is_read_rather_than_a_cover_sheet_before_it(store: Store, tmp_path: Path) -> None:
    tracks = [("Title", "Artist"), ("Rag", "Ann")]
    file = write_xlsx(tmp_path / "c.xlsx", [("name", "value"), ("user", "zoe")], Tracks=tracks + tracks)
    done = import_file(store, file, Catalog(ImportOptions(dry_run=True)))
    assert (done.counts["tracks"].new, done.refused, done.notes["headings"]) == (1, [], 1)
    file = write_xlsx(tmp_path / "a.xlsx", [("Version", "3"), ("Contact", "Zoe")], Tracks=tracks)
    assert import_file(store, file, Catalog(ImportOptions())).counts["tracks"].new == 1
    file = write_xlsx(tmp_path / "b.xlsx", [("User", "Email"), ("1", "x")], Listens=[("Song", "Day"), ("Rag", "1")])
    with pytest.raises(Failure, match=r"No column has the artist\. The sheet Listens was read, not Sheet\. Name one"):
        import_file(store, file, Catalog(ImportOptions()))


def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("orjson", "python_calamine", "resource", "musicsvc"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    assert records(write_xlsx(Path("a.xlsx"), [("a", "b"), ("1", "2")])) == [(2, {"a": "1", "b": "2"})]


def test_a_cell_merged_over_several_rows_stands_for_each_of_them(tmp_path: Path) -> None:
    rows = [("Album", "Title"), ("Two", "Rag"), (None, "Tune"), (None, None), (None, "Waltz"), (None, "Other")]
    file = write_xlsx(tmp_path / "a.xlsx", rows)
    book = openpyxl.load_workbook(file)
    book["Sheet"].merge_cells("A2:A5")
    book["Sheet"].merge_cells("B6:C6")
    book.save(file)
    assert [row["Album"] for _, row in records(file)] == ["Two", "Two", "Two", ""]


def test_formulas_have_the_value_that_was_saved_and_errors_none(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", [("a", "b", "c")])
    cells = '<c r="A2"><f>1+1</f><v>2</v></c><c r="B2" t="str"><f>A1</f><v>x</v></c><c r="C2" t="e"><v>#N/A</v></c>'
    head = "".join(f'<c r="{name}1" t="inlineStr"><is><t>{name.lower()}</t></is></c>' for name in "ABC")
    sheet = (
        f'<worksheet xmlns="{MAIN}"><sheetData><row r="1">{head}</row><row r="2">{cells}</row></sheetData></worksheet>'
    )
    assert records(replace_member(file, SHEET, sheet)) == [(2, {"a": 2, "b": "x", "c": ""})]


def test_durations_typed_as_minutes_and_seconds_are_so_for_the_whole_column(store: Store, tmp_path: Path) -> None:
    lengths = (time(3, 45), time(4, 2), timedelta(hours=75, minutes=30), "5:01", time(0, 3, 45))
    rows = [("Title", "Artist", "Length"), *((f"T{at}", "Ann", each) for at, each in enumerate(lengths))]
    summary = import_file(store, write_xlsx(tmp_path / "a.xlsx", rows), Catalog(ImportOptions()))
    found = store.read(lambda: [track.duration for track in Track.select().order_by(Track.id)]).result()
    assert found == [225_000, 242_000, 4_530_000, 301_000, 0]
    assert summary.columns[2].written == "m:ss, which the spreadsheet holds as hours and minutes"
    reason = "must be a duration as m:ss, which the spreadsheet holds as hours and minutes in this column"
    assert [(key, each.line) for key, each in summary.left_out.items()] == [(("duration_ms", reason), 6)]


def test_a_duration_of_more_than_a_day_is_one_whatever_its_format(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", [("Title", "Length"), ("A", 1 + 3 / 48), ("B", 0.5)])
    book = openpyxl.load_workbook(file)
    for cell, form in (("B2", "h:mm"), ("B3", "[mm]:ss")):
        book["Sheet"][cell].number_format = form
    book.save(file)
    assert [row["Length"] for _, row in records(file)] == [timedelta(hours=25, minutes=30), timedelta(hours=12)]


@pytest.mark.usefixtures("small_catalog")
def test_plays_and_their_times_are_read_from_a_workbook(store: Store, tmp_path: Path) -> None:
    at = datetime(2026, 2, 1, 9, 30, 15)  # noqa: DTZ001 - as cells are
    rows = [("Song", "Artist", "Time"), ("Rag", "Ann", at), ("Rag", "Ann", date(2026, 2, 2))]
    summary = import_file(store, write_xlsx(tmp_path / "a.xlsx", rows), Plays(ImportOptions(listener="me")))
    assert (counts(summary, "plays"), summary.refused) == ((2, 0, 0, 0), [])


@pytest.mark.slow
def test_follows_and_playlists_are_read_from_a_workbook(store: Store, tmp_path: Path) -> None:
    owner = "label@label.test"
    store.write(lambda: users.create(owner, now=1).id).result()
    edges = write_xlsx(tmp_path / "a.xlsx", [("Edges",), ("node_1", "node_2"), (747, 8.0), (8, owner)])
    summary = import_file(store, edges, Follows(ImportOptions(create_missing=True)))
    assert (counts(summary, "follows"), summary.refused) == ((2, 0, 0, 0), [])
    songs = write_ods(tmp_path / "a.ods", [("Title", "Artist", "Track ID", "Playlist"), (1975, "Ann", 17, "Mine")])
    for kind in (Catalog, Playlists):
        done = import_file(store, songs, kind(ImportOptions(user=owner)))
    assert (counts(done, "entries"), done.refused) == ((1, 0, 0, 0), [])


def bomb(file: Path, last: int) -> Path:
    """Write a workbook of a kilobyte that has a cell in its first row, and one at the end of row `last`."""
    sheet = (
        f'<worksheet xmlns="{MAIN}"><sheetData><row r="1"><c r="A1"><v>1</v></c></row>'
        f'<row r="{last}"><c r="XFD{last}"><v>1</v></c></row></sheetData></worksheet>'
    )
    return replace_member(write_xlsx(file, [("a", "b")]), SHEET, sheet)


MEMORY = "needs more than a gigabyte of memory or a minute to read. Save the sheet as CSV and import that."
DAMAGED = "is damaged or has a password. Open it in a spreadsheet program, and save the sheet as CSV."


@pytest.mark.slow
def test_a_workbook_that_claims_a_billion_cells_costs_no_memory_and_is_refused(tmp_path: Path) -> None:
    for row in (1_048_576, 4_000):  # of 550 GB, and of 2 GB
        assert failure(bomb(tmp_path / "a.xlsx", row)) == MEMORY


def test_a_row_of_more_than_a_million_characters_is_refused_with_its_number(tmp_path: Path) -> None:
    cell = "x" * 32_767  # the longest
    long = [cell] * 33
    file = write_xlsx(tmp_path / "a.xlsx", [range(33), [cell] * 32, long, ["y"] * 33])
    with readers.open_file(file) as reader:
        assert [(record.line, record.fault) for record in reader] == [(2, None), (3, TOO_LONG), (4, None)]
    file = write_xlsx(tmp_path / "a.xlsx", [long])
    assert failure(file) == f"{file}: row 1 has more than 1,048,576 characters."


def test_a_sheet_of_formulas_without_a_result_is_empty(tmp_path: Path) -> None:
    cell = '<c r="B2" t="str"><f>IF(A1,A1,"")</f><v></v></c>'
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData><row r="2">{cell}</row></sheetData></worksheet>'
    file = replace_member(write_xlsx(tmp_path / "a.xlsx", [("a", "b")]), SHEET, sheet)
    assert failure(file) == "is empty: no sheet has a cell."
    file = replace_member(write_xlsx(tmp_path / "b.xlsx", [("a", "b")], Songs=[("a", "b"), ("1", "2")]), SHEET, sheet)
    assert records(file) == [(2, {"a": "1", "b": "2"})]


@pytest.mark.slow
def test_workbooks_that_cannot_be_read_are_one_clear_sentence(tmp_path: Path) -> None:
    secret = write_ole(tmp_path / "secret.xlsx", {"EncryptedPackage": b"x"})
    assert failure(secret) == "is an Office document with a password, which cannot be imported. Save it without one."
    assert failure(write_xlsx(tmp_path / "none.xlsx", [])) == "is empty: no sheet has a cell."
    cut = write_xlsx(tmp_path / "cut.xlsx", [("a", "b")])
    cut.write_bytes(cut.read_bytes()[:-100])
    assert failure(cut) == "is damaged: it cannot be read as a zip file."
    assert failure(replace_member(write_xlsx(tmp_path / "x.xlsx", [("a",)]), SHEET, "<worksheet><row")) == DAMAGED
    old = write_xls(tmp_path / "old.xls", [("a", "b"), ("1", "2")])
    old.write_bytes(old.read_bytes()[:-SECTOR])
    assert failure(old) == DAMAGED
    twice = write_xlsx(tmp_path / "twice.xlsx", [("Tracks",), ("a", "b", "a")])
    assert failure(twice) == f"{twice}: row 2 names the column 'a' twice; rename one."
