"""Columns of all notations in files of all formats: what of them is imported, and what is said of the rest."""

import csv
from collections.abc import Callable, Sequence
from datetime import date
from datetime import time as clock
from pathlib import Path
from typing import Any

import orjson
import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.cells.dates import UNCLEAR
from musicsvc.store.importing.cells.names import unmarked
from musicsvc.store.importing.cells.times import ZONED
from musicsvc.store.importing.files.records import SAMPLE
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Album, Play, Track
from tests.support.import_files import import_file
from tests.support.refused_rows import reasons
from tests.support.workbooks import write_xlsx

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

Table = Sequence[Sequence[Any]]


def write_csv(file: Path, rows: Table) -> Path:
    with file.open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines, delimiter=";").writerows(rows)
    return file


def write_workbook(file: Path, rows: Table) -> Path:
    """Write a workbook, which has the values of formulas such as ="036"."""
    return write_xlsx(file, [[unmarked(cell) if str(cell).startswith("=") else cell for cell in row] for row in rows])


def write_jsonl(file: Path, rows: Table) -> Path:
    file.write_bytes(b"".join(orjson.dumps(dict(zip(rows[0], row, strict=True))) + b"\n" for row in rows[1:]))
    return file


WRITERS: dict[str, Callable[[Path, Table], Path]] = {"csv": write_csv, "jsonl": write_jsonl, "xlsx": write_workbook}


@pytest.fixture(params=WRITERS)
def brought(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Callable[..., ImportSummary]:
    """Import a catalog with one more column, or several, in a file of each format."""

    def bring(heading: str | Sequence[str], *cells: Any, **options: Any) -> ImportSummary:
        headings = [heading] if isinstance(heading, str) else heading
        more = [[cell] if isinstance(heading, str) else cell for cell in cells]
        rows = [
            ["Title", "Artist", "Album", *headings],
            *(["T" + str(at), "Ann", "A" + str(at), *each] for at, each in enumerate(more)),
        ]
        file = WRITERS[request.param](tmp_path / f"a.{request.param}", rows)
        return import_file(store, file, Catalog(ImportOptions(**options)))

    return bring


def stored(store: Store, column: str) -> list[Any]:
    table = Album if column in {"upc", "label"} else Track
    return store.read(lambda: [getattr(each, column) for each in table.select().order_by(table.id)]).result()


COLUMNS = [
    ("Duration", ["PT3M45S", "PT1H2M3S"], "duration", [225_000, 3_723_000]),
    ("Duration", ["3m 45s", "1h 2m 3s"], "duration", [225_000, 3_723_000]),
    ("Duration", ["222,5", "61,25"], "duration", [222_500, 61_250]),
    ("Duration", ["225,000", "61,250"], "duration", [225_000, 61_250]),
    ("Length (ms)", ["225,000", "61,250"], "duration", [225_000, 61_250]),
    ("Duration (ms)", ["222.500", "1.225.000"], "duration", [222_500, 1_225_000]),
    ("duration_ms", ["222.500", "61.250", "180000"], "duration", [222_500, 61_250, 180_000]),
    ("Duration (ms)", ["222500.5", "61250.125"], "duration", [222_501, 61_250]),
    ("Dauer (min)", ["3,75", "4"], "duration", [225_000, 240_000]),
    ("Time", ["3:45:00", "4:02:00"], "duration", [225_000, 242_000]),
    ("Time", ["0:03:45", "1:02:03"], "duration", [225_000, 3_723_000]),
    ("Time", ["12:03:45 AM", "1:02:03 PM"], "duration", [225_000, 46_923_000]),
    ("Time", ["3:45:00 AM", "12:30:00 PM"], "duration", [225_000, 750_000]),
    ("Time", ["3:45", "1:02:00", "4:01"], "duration", [225_000, 3_720_000, 241_000]),
    ("Time", ["3’45”", "61″"], "duration", [225_000, 61_000]),
    ("Time", ["0:03:45.200000", "4:01"], "duration", [225_200, 241_000]),
    ("Time", ["0:03:00", "0:04:00"], "duration", [180_000, 240_000]),
    ("Track #", ["3/15", "4/15"], "track_number", [3, 4]),
    ("Track #", ["03 of 15", "4 von 15"], "track_number", [3, 4]),
    ("Track No", ["0", "4"], "track_number", [None, 4]),
    ("Release Date", ["2024/03/21", "2024/3/1"], "release_date", ["2024-03-21", "2024-03-01"]),
    ("Release Date", ["20240321", "20240322"], "release_date", ["2024-03-21", "2024-03-22"]),
    ("Release Date", [20240321, 20240322], "release_date", ["2024-03-21", "2024-03-22"]),
    ("Release Date", ["21-Mar-24", "1-Dez-99"], "release_date", ["2024-03-21", "1999-12-01"]),
    ("Release Date", ["1er avril 2024", "21. März 2024"], "release_date", ["2024-04-01", "2024-03-21"]),
    ("Release Date", ["March 21, 2024", "Thu, 21 Mar 2024"], "release_date", ["2024-03-21", "2024-03-21"]),
    ("Release Date", ["3/21/24", "1/2/24"], "release_date", ["2024-03-21", "2024-01-02"]),
    ("Release Date", ["04.13.2021", "04.03.2021"], "release_date", ["2021-04-13", "2021-04-03"]),
    ("Release Date", ["04.03.2021", "13.04.2021"], "release_date", ["2021-03-04", "2021-04-13"]),
    ("Release Date", ["3/21/2024 12:00:00 AM", "1/2/2024 12:00:00 AM"], "release_date", ["2024-03-21", "2024-01-02"]),
    ("Release Date", ["04/2021", "3 maggio 2021"], "release_date", ["2021-04-01", "2021-05-03"]),
    ("Release Date", ["3 mei 2021", "2021年4月3日"], "release_date", ["2021-05-03", "2021-04-03"]),
    ("release_date", ["1999-05-00", "1999-00-00", "0000-00-00"], "release_date", ["1999-05-01", "1999-01-01", None]),
    (("Day", "Month", "Year"), [(21, 3, 2024), ("1", "April", "1999")], "release_date", ["2024-03-21", "1999-04-01"]),
    (("released_year", "released_month", "released_day"), [(2024.0, 3.0, 21.0)], "release_date", ["2024-03-21"]),
    (
        ("Year", "Day", "Month"),
        [(1999, "", ""), (2001, "", 5), (2002, 7, 6)],
        "release_date",
        ["1999-01-01", "2001-05-01", "2002-06-07"],
    ),
    ("Key", ["Am", "F#m", "Bb maj", "C"], "key", ["A", "F#", "A#", "C"]),
    ("Key", ["Am", "F# Minor", "Bb maj", "C"], "scale", ["Minor", "Minor", "Major", None]),
    ("Initial Key", ["8A", "11B", "01A", "4d"], "key", ["A", "A", "G#", "A"]),
    ("Initial Key", ["8A", "11B", "1m", "6"], "scale", ["Minor", "Major", "Minor", None]),
    ("Explicit", ["NotExplicit", "ExplicitContentEdited"], "explicit", [False, False]),
    (
        "Explicit",
        ["Explicit Content", "Clean version", "NoAdviceAvailable", "c"],
        "explicit",
        [True, False, None, False],
    ),
    ("BPM", ["119,6", "120,000"], "bpm", [120, 120]),
    ("UPC", ["0 724384 960650", "00036000291452"], "upc", ["0724384960650", "036000291452"]),
    ("UPC", ['="0724384960650"', '="036000291452"'], "upc", ["0724384960650", "036000291452"]),
    ("UPC", ["'724384960650", "36000291452.0"], "upc", ["724384960650", "036000291452"]),
    ("ISRC", ["GB AYE 68 00011", "gb-aye-68-00012"], "isrc", ["GBAYE6800011", "GBAYE6800012"]),
    ("ISRC", ['="GBAYE6800011"', "ISRC GBAYE6800012"], "isrc", ["GBAYE6800011", "GBAYE6800012"]),
]


@pytest.mark.parametrize(("heading", "cells", "column", "found"), COLUMNS)
def test_what_can_mean_one_thing_is_read(
    store: Store,
    brought: Callable[..., ImportSummary],
    heading: str | tuple[str, ...],
    cells: list[Any],
    column: str,
    found: list[Any],
) -> None:
    summary = brought(heading, *cells)
    assert (reasons(summary), summary.left_out, summary.unread) == ([], {}, [])
    assert stored(store, column) == found


def test_a_scale_of_its_own_wins_over_that_of_a_key(store: Store, brought: Callable[..., ImportSummary]) -> None:
    brought(("Key", "Scale"), ("Am", "Major"), ("Am", ""))
    assert stored(store, "scale") == ["Major", "Minor"]


UNREAD = [
    ("Duration", ["long", "short"], "duration_ms", "must be a number"),
    ("Duration", ["3m²", "4m፩"], "duration_ms", "must be a number"),  # digits that are no decimals
    ("Duration", ["3.45", "4.02"], "duration_ms", "can be minutes, or minutes.seconds, or seconds"),
    ("Duration", ["3,75", "4.5"], "duration_ms", "can be minutes, or minutes.seconds, or seconds"),
    ("Duration", ["3", 4], "duration_ms", "can be minutes, or minutes.seconds, or seconds"),
    ("Track #", ["A1", "B2"], "track_number", "must be a number"),
    ("Track #", ["1.01", "1e999"], "track_number", "must be a whole number"),
    ("Date", ["soon", "5/13/26 11:28pm", "12/31"], "release_date", "must be a date"),
    ("Date", ["² Jan 2020", "፩ Jan 2020"], "release_date", "must be a date"),
    ("Key", ["H", "a-Moll", "13A", "AM"], "key", "must be a note"),
    ("UPC", ["7.24385E+11", "7,24385E+11"], "upc", "was rounded by the spreadsheet"),
]


@pytest.mark.parametrize(("heading", "cells", "field", "reason"), UNREAD)
def test_a_column_that_cannot_be_read_is_named_with_its_first_cell_and_their_number(
    store: Store, brought: Callable[..., ImportSummary], heading: str, cells: list[Any], field: str, reason: str
) -> None:
    summary = brought(heading, *cells)
    assert (reasons(summary), summary.left_out, len(stored(store, "name"))) == ([], {}, len(cells))
    (unread,) = summary.unread
    assert (unread.column, unread.field, unread.example) == (heading, field, cells[0])
    assert unread.line in {1, 2}  # JSON Lines have no row of headings
    assert unread.reason.startswith(reason)
    assert unread.count == len(cells)
    assert summary.unused == [heading]


def test_of_two_columns_for_a_field_the_readable_one_is_taken_and_the_other_said(
    store: Store, brought: Callable[..., ImportSummary]
) -> None:
    summary = brought(("Release Date", "Year"), ("soon", "1999"), ("later", "2001"))
    assert [(each.column, each.count) for each in summary.unread] == [("Release Date", 2)]
    assert stored(store, "release_date") == ["1999-01-01", "2001-01-01"]


def test_of_several_isrcs_the_first_is_taken_and_the_cell_is_counted(
    store: Store, brought: Callable[..., ImportSummary]
) -> None:
    several = ("GBAYE6800011;GBAYE6800012", "GBAYE6800013, GBAYE6800014", "GBAYE6800015 GBAYE6800016", "GBAYE6800017")
    summary = brought("ISRC", *several)
    (left,) = summary.left_out.values()
    assert [*summary.left_out] == [("isrc", "has several ISRCs, and the first is taken")]
    assert (left.count, left.example) == (3, several[0])
    assert stored(store, "isrc") == ["GBAYE6800011", "GBAYE6800013", "GBAYE6800015", "GBAYE6800017"]


def test_a_single_cell_that_cannot_be_read_is_left_out_and_its_row_stays(
    store: Store, brought: Callable[..., ImportSummary]
) -> None:
    summary = brought("UPC", "724384960650", "724384960651", "7.24385E+11", "036000291452")
    assert {(name, each.count, each.example) for (name, _), each in summary.left_out.items()} == {
        ("upc", 1, "724384960651"),
        ("upc", 1, "7.24385E+11"),
    }
    assert stored(store, "upc") == ["724384960650", None, None, "036000291452"]


def test_an_order_that_no_date_shows_is_asked_for(brought: Callable[..., ImportSummary], store: Store) -> None:
    with pytest.raises(Failure, match=r"10/11/24 in the column 'Date'"):
        brought("Date", "10/11/24", "1/2/24")
    brought("Date", "10/11/24", "1/2/24", date_format="DD/MM/YYYY")
    assert stored(store, "release_date") == ["2024-11-10", "2024-02-01"]


PLAYS = [
    (["2026-01-31 12:00:00 UTC", "2026-01-31T13:00+01"], None),
    (["31.01.2026 12:00", "31.1.2026 12:00:00", "31.01.2026, 12:00 Uhr"], None),
    (["31 Jan 2026, 12:00", "Sat, 31 Jan 2026 13:00:00 +0100", "31. Januar 2026 12:00"], None),
    (["31/01/2026 12:00", "31/01/2026 12:00"], None),
    (["1/31/26 12:00 PM", "01/31/2026 1:00 pm +01:00"], None),
    (["01.31.2026 12:00", "01.31.2026 12:00 PM"], None),
    (["20260131T120000Z", "2026/01/31 12:00"], None),
    (["Jan 31, 2026 at 12:00\u202fPM", "31 janvier 2026 à 12:00", "31/01/2026\xa012:00 p. m."], None),
    (["1769860800", "1769860800.0"], None),
    (["01/31/2026 12:00"], "MM/DD/YYYY"),
]


def bring_plays(store: Store, file: Path, cells: Sequence[Any], heading: str = "Time", **options: Any) -> ImportSummary:
    rows = [
        (heading, "Track", "Artist", "listener"),
        *((cell, f"T{at}", "Ann", "zoe") for at, cell in enumerate(cells)),
    ]
    write = WRITERS[file.suffix[1:]]
    return import_file(store, write(file, rows), Plays(ImportOptions(create_missing=True, **options)))


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(("cells", "date_format"), PLAYS)
def test_times_are_read_as_dates_are(
    store: Store, tmp_path: Path, form: str, cells: list[str], date_format: str | None
) -> None:
    summary = bring_plays(store, tmp_path / f"a.{form}", cells, date_format=date_format)
    assert (reasons(summary), summary.unread) == ([], [])
    times = store.read(lambda: [each.played_at for each in Play.select()]).result()
    assert times == [1_769_860_800_000_000] * len(cells)


def test_a_time_that_can_be_either_way_round_is_refused_unless_somebody_says_which(
    store: Store, tmp_path: Path
) -> None:
    cells = ["2026-01-02 12:00", "02/01/2026 12:00", "02/02/2026 12:00"]
    summary = bring_plays(store, tmp_path / "a.csv", cells)
    assert reasons(summary) == [
        (
            3,
            f"played_at {UNCLEAR}",
        )
    ]
    for form, day in (("DD/MM/YYYY", 2), ("MM/DD/YYYY", 32)):
        assert reasons(bring_plays(store, tmp_path / "a.csv", cells[1:2], date_format=form)) == []
        times = store.read(lambda: {each.played_at for each in Play.select()}).result()
        assert (1_767_225_600 + (day - 1) * 86_400 + 43_200) * 1_000_000 in times


@pytest.mark.parametrize("form", WRITERS)
def test_times_that_stand_for_an_unknown_one_are_refused(store: Store, tmp_path: Path, form: str) -> None:
    cells = ["0", "315532800", "1980-01-01 00:00:00", "315532801", "100"]
    summary = bring_plays(store, tmp_path / f"a.{form}", cells)
    assert {reason for _, reason in reasons(summary)} == {"played_at is that of a clock that was not set"}
    assert (len(reasons(summary)), summary.counts["plays"].new) == (3, 2)


@pytest.mark.parametrize("cells", [[225, 242], ["225312", "242000", ""]])
def test_lengths_in_a_column_of_that_heading_are_no_times_of_1970(
    store: Store, tmp_path: Path, cells: Sequence[Any]
) -> None:
    with pytest.raises(Failure, match="The column 'Time' cannot be read: played_at holds lengths"):
        bring_plays(store, tmp_path / "a.csv", cells)


@pytest.mark.parametrize(
    ("zone", "cell", "is_read"),
    [
        *((zone, "2026-01-31 12:00:00", False) for zone in ("CET", "Europe/Berlin", "UTC+2", "GMT +01:00", "local")),
        *(
            (zone, "2026-01-31 12:00:00", True)
            for zone in ("UTC", "UTC+00:00", "UTC, 24 h, ISO 8601", "yyyy-mm-dd hh:mm", "when", "UTC ፩")
        ),
        *(
            (f"when|{zone}", "2026-01-31 12:00:00", False)
            for zone in ("Time Zone|Europe/Berlin", "tz|EST", "UTC Offset|-05:00", "utc_offset|3600", "Zeitzone|UTC+1")
        ),
        *(
            (f"when|{zone}", "2026-01-31 12:00:00", True)
            for zone in (
                "Time Zone|UTC",
                "tz|Etc/UTC",
                "UTC Offset|+00:00",
                "utc_offset|0",
                "tz|Z",
                "tz|GMT+0",
                "tz|Etc/GMT",
                "tz|",
            )
        ),
        *(("when|tz|EST", cell, True) for cell in ("2026-01-31T13:00+01", "2026-01-31 12:00:00Z", "1769860800")),
        *(("CET", cell, True) for cell in ("2026-01-31T13:00+01", "2026-01-31 12:00:00Z", "1769860800")),
    ],
)
def test_times_below_a_zone_are_read_if_it_is_utc_or_if_they_say_so(
    store: Store, tmp_path: Path, zone: str, cell: str, *, is_read: bool
) -> None:
    told, *beside = zone.split("|")  # the name and the cell of another column
    cells = [("artist", "track", "listener", f"Played at ({told})", *beside[:1]), ("Ann", "T", "z", cell, *beside[1:])]
    file, kind = write_csv(tmp_path / "a.csv", cells), Plays(ImportOptions(create_missing=True))
    if is_read:
        import_file(store, file, kind)
        assert store.read(lambda: [each.played_at for each in Play.select()]).result() == [1_769_860_800_000_000]
    else:
        with pytest.raises(Failure, match=r"'Played at \(.*\)' cannot be read: played_at is in another zone than UTC"):
            import_file(store, file, kind)


CLOCKED = {"Time", "Uhrzeit", "Air Time (UTC)", "Hora", "Sendezeit"}
NOON = ("31.01.2026", "12:00:00")


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [
        (("Date", "Time"), [("2026-01-31", "12:00:00"), ("2026-01-31", "12:00")], ""),
        (("Uhrzeit", "Datum"), [("12:00", "31.01.2026"), ("12:00", "31.1.26")], ""),
        (("Air Date", "Air Time (UTC)"), [("1/31/2026", "12:00 PM"), ("01/31/2026", "12:00:00 PM")], ""),
        (("Date", "Time", "UTC Offset"), [(*NOON, "+00:00"), (*NOON, "")], ""),
        (("Fecha", "Hora", "Time zone"), [("31/01/2026", "12:00 p. m.", "UTC")], ""),
        (("Date", "Time (CET)"), [NOON], "in another zone"),
        (("Datum", "Sendezeit"), [("31.01.2026", "00:00"), ("31.01.2026", "0:00:00")], ""),
        (("Date", "Time"), [("2026-01-31", "3:45"), ("2026-01-31", "4:01")], "no date"),  # those may be lengths
    ],
)
@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_date_and_time_of_plays_may_stand_side_by_side(
    store: Store, tmp_path: Path, form: str, columns: Sequence[str], rows: Table, reason: str
) -> None:
    cells = [(*columns, "Track", "Artist", "listener"), *((*row, f"T{at}", "Ann", "z") for at, row in enumerate(rows))]
    file, kind = WRITERS[form](tmp_path / f"a.{form}", cells), Plays(ImportOptions(create_missing=True))
    if reason:
        with pytest.raises(Failure, match=f"'Time.*' cannot be read: .*{reason}"):
            import_file(store, file, kind)
    else:
        summary = import_file(store, file, kind)
        assert {each.why for each in summary.columns if each.column in {"Date", "Datum", "Air Date", "Fecha"}} == {
            f"it is read with {next(each for each in columns if each in CLOCKED)}"
        }
        times = store.read(lambda: [each.played_at for each in Play.select()]).result()
        assert times == [1_769_860_800_000_000 - ("Sendezeit" in columns) * 43_200_000_000] * len(rows)


def test_times_of_a_workbook_are_joined_with_the_dates_beside_them(store: Store, tmp_path: Path) -> None:
    noon = (date(2026, 1, 31), clock(12), "T", "Ann", "z")
    file = write_workbook(tmp_path / "a.xlsx", [("Date", "Time", "Track", "Artist", "listener"), noon])
    (guess,) = (
        each
        for each in import_file(store, file, Plays(ImportOptions(create_missing=True))).columns
        if each.field == "played_at"
    )
    assert (guess.column, guess.written) == ("Time", "to the minute")


def test_a_later_row_in_another_zone_is_refused(store: Store, tmp_path: Path) -> None:
    noon = ("2026-01-31 12:00:00", "T", "Ann", "z")
    more = [(*noon, "CET"), ("2026-01-31T12:00:00Z", *noon[1:], "CET")]
    rows = [("Played at", "Track", "Artist", "listener", "tz"), *[(*noon, "UTC")] * SAMPLE, *more]
    file = write_csv(tmp_path / "a.csv", rows)
    assert reasons(import_file(store, file, Plays(ImportOptions(create_missing=True)))) == [
        (SAMPLE + 2, f"played_at {ZONED}")
    ]


@pytest.mark.parametrize(
    "heading", ["Play Count", "Streams", "# of Units Sold", "Quantity", "Plays", "Écoutes", "Count"]
)
def test_rows_of_sums_are_no_plays_unless_each_is_of_one(store: Store, tmp_path: Path, heading: str) -> None:
    cells = [("artist", "track", "listener", "Time", heading), ("Ann", "T", "z", "2026-01-31 12:00:07", 1)]
    more = ("Ann", "T", "z", "2026-02-28 12:00:07", "1,234")
    for rows, name in ((cells, "a.csv"), ([*cells, more], "b.csv")):
        file, kind = write_csv(tmp_path / name, rows), Plays(ImportOptions(create_missing=True))
        if name == "b.csv":
            with pytest.raises(Failure, match=r"'.*' cannot be read: plays must be 1, .*; line 3 has 1,234\."):
                import_file(store, file, kind)
        else:
            assert import_file(store, file, kind).counts["plays"].new == 1


@pytest.mark.parametrize(
    "heading", ["listened_ms", "ms_played", "Duration (ms)", "duration_ms", "Seconds played", "Minutes played"]
)
def test_the_time_heard_of_plays_has_a_name_of_its_own_and_the_old_one(
    store: Store, tmp_path: Path, heading: str
) -> None:
    unit = 1000 if "econds" in heading else 60_000 if "inutes" in heading else 1
    file = write_csv(
        tmp_path / "a.csv",
        [("played_at", "track", "artist", "listener", heading), (9, "T", "Ann", "z", 31_000 / unit)],
    )
    import_file(store, file, Plays(ImportOptions(create_missing=True)))
    assert store.read(lambda: [each.duration_ms for each in Play.select()]).result() == [31_000]


@pytest.mark.parametrize("name", ["listened_ms", "duration_ms"])
def test_a_column_can_be_mapped_to_either_name(store: Store, tmp_path: Path, name: str) -> None:
    file = write_csv(
        tmp_path / "a.csv", [("played_at", "track", "artist", "listener", "x"), (9, "T", "Ann", "z", 31_000)]
    )
    import_file(store, file, Plays(ImportOptions(create_missing=True, pairs=[f"x={name}"])))
    assert store.read(lambda: [each.duration_ms for each in Play.select()]).result() == [31_000]
