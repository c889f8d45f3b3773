"""The refused rows of an import: a line for each reason, and all of them as a file."""

import csv
import json
import zipfile
from datetime import date, datetime, time, timedelta
from io import BytesIO
from pathlib import Path

import duckdb
import pytest

from musicsvc.cli import import_run
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import refused_rows
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.refused_rows import RefusedRows
from musicsvc.store.importing.summary import Refusal
from musicsvc.store.models import Artist, Track, TrackArtist
from tests.cli.conftest import Json, Run
from tests.support.bounds import Bounds
from tests.support.command import run_in_process
from tests.support.open_files import open_files
from tests.support.workbooks import write_xlsx

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

Table = list[list[str]]
REASON = "track is missing; bpm must be between 20 and 400"
LONG = "x" * 256
TOO_LONG = "external_id must not be longer than 255 characters"


def table(file: Path) -> Table:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def test_rows_are_grouped_by_reason_in_ranges_of_lines() -> None:
    def rows(kind: str, lines: list[int], *names: str) -> list[Refusal]:
        return [Refusal(line, kind, names) for line in lines]

    refused = [
        *rows("track is missing", [2]),
        *rows("no such track", [3, 4, 5, 9], "'a'"),
        *rows("no such track", [6, 11], "'b'", "'a'"),
        *rows("no such account", [7], "'x'"),
        *rows("bpm must be a number", list(range(20, 60, 2))),
        Refusal(2, "track is missing", member="in.json"),
        Refusal(3, "track is missing", member="in.json"),
    ]
    assert list(refused_rows.lines(refused)) == [
        "line 2: track is missing",
        "lines 3-5, 9, 6, 11 (6 rows): no such track: 'a', 'b'",
        "line 7: no such account: 'x'",
        "lines 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42 and 8 more (20 rows): bpm must be a number",
        "lines 2-3 (2 rows): in.json: track is missing",
    ]
    many = [Refusal(line, "no such track", (f"'{line}'",)) for line in range(1, 16)]
    (line,) = refused_rows.lines(many)
    assert line.startswith("lines 1-15 (15 rows): no such track: '1', '2'")
    assert line.endswith("'12' and 3 more")


def test_tracks_that_differ_in_case_are_named_with_their_ids(run: Run, store: Store, tmp_path: Path) -> None:
    def make() -> None:
        for number, name in enumerate(("KISS", "Kiss"), 1):
            Artist.create(name=name, created_at=1)
            Track.create(name="Rag", duration=1, created_at=1)
            TrackArtist.create(track=number, artist=number, position=0)

    store.write(make).result()
    file = tmp_path / "plays.csv"
    file.write_text("artist,track,played_at,listener\nkiss,rag,1402920000,z\nKiss,Rag,1402920000,z\n")
    said = run("import", "plays", str(file)).stderr.splitlines()[0]
    assert said.startswith("line 2: several tracks differ only in case; write one exactly, or name it by an id: ")
    assert said.endswith(": 'rag' by kiss (track_id 1 or 2)")


CASES = {
    "rows.csv": (
        'track,artist,reason,bpm\n"One, two",,"x ""y""",fast\nT,A,,90\nU,A\nV,A,r,9,more,"ev;en"\n,B,=1+1,\n',
        [
            ["line", "reason", "track", "artist", "reason_", "bpm", "further cells"],
            ["2", "artist is missing; bpm must be a number", "One, two", "", 'x "y"', "fast", ""],
            ["4", "the row has 2 cells, the header 4", "U", "A", "", "", ""],
            ["5", "the row has 6 cells, the header 4", "V", "A", "r", "9", "more;ev;en"],
            ["6", "track is missing", "", "B", "'=1+1", "", ""],
        ],
    ),
    "rows.jsonl": (
        (
            '{"track": "T", "artist": ["A", "B"], "bpm": 90}\n'
            '{"artist": ["A", "B"], "x": {"y": [1]}, "tags": null}\n{broken\n'
        ),
        [
            ["line", "reason", "artist", "x", "tags", "row"],
            ["2", "track is missing", "A;B", '{"y": [1]}', "", ""],
            ["3", "the line is not valid JSON", "", "", "", "{broken"],
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_file_holds_each_refused_row_with_its_own_cells(run: Run, tmp_path: Path, name: str) -> None:
    content, expected = CASES[name]
    file, target = tmp_path / name, tmp_path / "refused.csv"
    file.write_text(content)
    target.write_text("old")
    run("import", "catalog", str(file), "--refused", str(target))
    assert table(target) == expected
    assert target.read_bytes().startswith(b'"line","reason"')


def test_a_list_that_cannot_be_written_leaves_no_import_untold(run: Run, ask: Json, tmp_path: Path) -> None:
    file, full = tmp_path / "rows.csv", tmp_path / "full.csv"
    file.write_text("track,artist\nA,B\nC,\n")
    (tmp_path / "folder.csv").mkdir()
    line = ("import", "catalog", str(file), "--refused")
    assert "is a folder." in run(*line, str(tmp_path / "folder.csv"), expect=1).stderr
    assert ask("import", "list") == []
    full.symlink_to("/dev/full")
    done = run_in_process([*line, str(full)])
    assert (done.returncode, done.stdout.splitlines()[3].split()) == (1, ["tracks", "1", "0", "0", "0"])
    assert f"Error: {full} cannot be written: No space left on device.\n" in done.stderr
    assert "musicsvc import undo 1\n" in done.stderr


def test_a_mended_file_of_refused_rows_goes_in(run: Run, ask: Json, tmp_path: Path) -> None:
    file, target = tmp_path / "rows.csv", tmp_path / "refused.csv"
    file.write_text(f"name,by,id\nT,A,{LONG}\nU,A,90\n" + "".join(f"S{number},B,{LONG}\n" for number in range(1200)))
    pairs = ("--map", "name=track", "by=artist", "id=external_id")
    run("import", "catalog", str(file), *pairs, "--refused", str(target))
    rows = table(target)
    assert (len(rows), rows[-1]) == (1202, ["1203", TOO_LONG, "S1199", "B", LONG])
    mended = tmp_path / "mended.csv"
    mended.write_text(target.read_text("utf-8").replace(LONG, ""))
    done = ask("import", "catalog", str(mended), *pairs, "--refused", str(target))
    assert (done["tracks"]["new"], done["refused"]) == (1201, [])
    assert table(target) == [["line", "reason", "line_", "reason_", "name", "by", "id"]]


def test_formulas_are_defused_and_the_next_import_takes_that_off_again(run: Run, store: Store, tmp_path: Path) -> None:
    names = ["=1+1", "'=2", "-3", "a\n@b", "it's"]
    file, target = tmp_path / "rows.csv", tmp_path / "refused.csv"
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows(
            [("track", "artist", "=id"), *((name, "'Ann'", LONG) for name in names), ("T", "B", "")]
        )
    mapped = ("--map", "=id=external_id")
    run("import", "catalog", str(file), *mapped, "--refused", str(target))
    rows = table(target)
    assert rows[0] == ["line", "reason", "track", "artist", "'=id"]
    assert [row[2] for row in rows[1:]] == ["'=1+1", "''=2", "'-3", "a\n'@b", "it's"]
    target.write_text(target.read_text("utf-8").replace(LONG, ""))
    run("import", "catalog", str(target), *mapped)
    write_xlsx(tmp_path / "a.xlsx", [[cell.replace(LONG, "") for cell in row] for row in rows])
    run("import", "catalog", str(tmp_path / "a.xlsx"), *mapped)
    found = store.read(lambda: [track.name for track in Track.select().order_by(Track.id)]).result()
    assert found == ["T", *names]
    file.write_text("track,artist\n'=1,Ann\n")  # not one of ours
    run("import", "catalog", str(file))
    found = store.read(lambda: [track.name for track in Track.select().order_by(Track.id)]).result()
    assert found[-1] == "'=1"


def test_headings_are_shown_cut(run: Run, tmp_path: Path) -> None:
    long = "y" * 200
    file = tmp_path / "rows.csv"
    file.write_text(f"track,artist,{long}\nRag,Ann,1\n")
    shown = f"{'y' * 80}…"
    assert f"Unused columns: {shown} (" in run("import", "catalog", str(file)).stderr
    file.write_text(f"a,{long},{long}\n1,2,3\n")
    assert f"names the column '{shown}' twice" in run("import", "catalog", str(file), expect=1).stderr
    file.write_text(",".join(["artist", *(f"{at:03}{long}" for at in range(60))]) + "\n")
    said = run("import", "catalog", str(file), expect=1).stderr
    assert said.count("…") == 49
    assert said.endswith(" and 11 more.\n")


def test_cells_of_parquet_and_of_archives_are_kept(run: Run, tmp_path: Path) -> None:
    file, target = tmp_path / "songs.parquet", tmp_path / "refused.csv"
    with duckdb.connect() as connection:
        songs = "SELECT 'T' AS track, ['A', 'B; C'] AS artist, DATE '1999-12-31' AS release_date, 9.5::DOUBLE AS bpm"
        rows = f"{songs} UNION ALL SELECT NULL, ['A'], DATE '1999-12-31', 5"
        connection.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")
    run("import", "catalog", str(file), "--refused", str(target))
    assert table(target)[1:] == [["2", REASON, "", "A", "1999-12-31", "5.0"]]

    entry = {"endTime": "2024-05-01 10:00", "msPlayed": 60_000, "trackName": "T"}
    whole = entry | {"artistName": "A"}
    with zipfile.ZipFile(tmp_path / "my.zip", "w") as archive:
        for number in (0, 1):
            archive.writestr(f"StreamingHistory{number}.json", json.dumps([whole, entry]))
    run("import", "plays", str(tmp_path / "my.zip"), "--listener", "z", "--create-missing", "--refused", str(target))
    assert [(line, reason) for line, reason, *_ in table(target)[1:]] == [
        ("2", f"StreamingHistory{number}.json: the entry has no artistName") for number in (0, 1)
    ]
    assert json.loads(table(target)[1][2]) == entry


def test_refused_rows_of_a_workbook_can_be_corrected_and_imported(run: Run, store: Store, tmp_path: Path) -> None:
    lengths = (time(3, 45), time(12, 2), timedelta(hours=75, minutes=30))
    days = (date(2026, 10, 15), datetime(2026, 10, 15, 9, 30), "soon")  # noqa: DTZ001 - as cells are
    upcs = (36000291452, 5, 36000291452)
    artists = ("Ann", None, None)
    rows = [(f"T{at}", artists[at], "One", *each) for at, each in enumerate(zip(lengths, days, upcs, strict=True))]
    heading = ("Title", "Artist", "Album", "Length", "Date", "UPC")
    target = tmp_path / "refused.csv"
    run("import", "catalog", str(write_xlsx(tmp_path / "a.xlsx", [heading, *rows])), "--refused", str(target))
    refused = table(target)
    assert [row[2:] for row in refused[1:]] == [
        ["T1", "", "One", "0:12:02", "2026-10-15T09:30", "5"],
        ["T2", "", "One", "1:15:30", "soon", "36000291452"],
    ]
    refused[1][3] = refused[2][3] = "Ann"
    with target.open("w", newline="") as file:
        csv.writer(file).writerows(refused)
    run("import", "catalog", str(target))
    found = store.read(lambda: [track.duration for track in Track.select().order_by(Track.id)]).result()
    assert found == [225_000, 722_000, 4_530_000]


def test_the_reader_of_a_file_of_refused_rows_closes_the_imported_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("track,artist\nS1,A\n")
    refused = RefusedRows(readers.open_file(file))
    with refused as reader:
        assert [record.values for record in reader] == [{"track": "S1", "artist": "A"}]
        assert open_files(tmp_path) == [str(file)]
    assert open_files(tmp_path) == []
    refused.write(BytesIO())


@pytest.mark.usefixtures("run")
def test_a_file_that_breaks_off_leaves_what_was_refused_before(tmp_path: Path) -> None:
    file, target = tmp_path / "rows.csv", tmp_path / "refused.csv"
    rows = "".join(f"S{number},A,{LONG if number == 7 else number}\n" for number in range(5100))
    file.write_bytes(b"track,artist,external_id\n" + rows.encode() + "宇多田,A,90\n".encode("shift_jis"))
    done = run_in_process(["import", "catalog", str(file), "--refused", str(target)])
    assert done.returncode == 1
    assert "The first 5,000 rows were imported" in done.stderr
    assert f"line 9: {TOO_LONG}" in done.stderr
    assert table(target)[1] == ["9", TOO_LONG, "S7", "A", LONG]


def test_whose_plays_they_are_is_asked_for_before_a_history_is_read(run: Run, tmp_path: Path) -> None:
    files = {
        "lastfm.csv": "uts,artist,album,track\n1402920000,Ann,,Rag\n",
        ".scrobbler.log": "#AUDIOSCROBBLER/1.1\nAnn\t\tRag\t1\t9\tL\t1402920000\t\n",
        "StreamingHistory0.json": '[{"endTime": "", "msPlayed": 60000, "trackName": "R", "artistName": "A"}, broken',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        done = run("import", "plays", str(tmp_path / name), expect=1)
        assert done.stderr == "Error: The file does not say whose plays these are. Add --listener NAME.\n"
    run("import", "plays", str(tmp_path / "lastfm.csv"), "--listener", "z", "--create-missing")
    assert "Rag" in run("export", "tracks").stdout


@pytest.mark.parametrize(
    ("through", "dry_run", "hint"),
    [
        (0, False, " Nothing was imported."),
        (1500, True, " Nothing was imported."),
        (1500, False, " The first 1,500 rows were imported. Run the command again to continue."),
    ],
)
def test_a_failure_says_how_much_was_imported(through: int, *, dry_run: bool, hint: str) -> None:
    assert import_run.resume_hint(through, dry_run=dry_run) == hint


def test_a_dry_run_of_several_batches_writes_all_refused_rows(run: Run, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=5)
    file, target = tmp_path / "rows.csv", tmp_path / "refused.csv"
    rows = "".join(f"S{number},A,{LONG if number in {7, 12} else number}\n" for number in range(13))
    file.write_text(f"track,artist,external_id\n{rows}")
    run("import", "catalog", str(file), "--dry-run", "--refused", str(target))
    assert [row[2] for row in table(target)[1:]] == ["S7", "S12"]
