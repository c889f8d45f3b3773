"""Files that claim little and unpack to much: the limited program reads them, and its parent watches it."""

import gzip
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats, histories, limited, readers
from musicsvc.store.importing.files.records import TOO_LONG, Limits, Reader
from tests.support.bounds import Bounds
from tests.support.history_files import LISTEN, stream, write
from tests.support.workbooks import write_xlsx

MEGABYTE = 10**6
LONG = "x" * 2**21
ENTRY = orjson.dumps(stream())


def parquet(file: Path, query: str) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    return file


def faults(reader: Reader) -> list[tuple[int, str | None]]:
    with reader:
        found = [(record.line, record.fault) for record in reader]
        assert reader.position == reader.size
    return found


def peak_of(file: Path) -> int:
    """Return the most bytes that telling what a file is takes in this process."""
    tracemalloc.start()
    try:
        formats.kind_of(file)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_rows_of_parquet_above_a_mebibyte_are_refused_by_line(tmp_path: Path) -> None:
    rows = "SELECT CASE WHEN i % 3 = 1 THEN 'Rag' ELSE repeat('x', 2097152) END AS track, 'a' AS artist"
    file = parquet(tmp_path / "a.parquet", f"{rows} FROM range(300) t(i)")
    assert file.stat().st_size < 4000
    found = faults(readers.open_file(file))
    assert found == [(at, None if at % 3 == 2 else TOO_LONG) for at in range(1, 301)]
    lists = "SELECT [repeat('x', 600000), repeat('y', 600000)] AS artist UNION ALL SELECT ['a']"
    assert faults(readers.open_file(parquet(tmp_path / "b.parquet", lists))) == [(1, TOO_LONG), (2, None)]


def test_cells_of_parquet_have_the_types_of_the_file(tmp_path: Path) -> None:
    cells = {
        "a": ("TIMESTAMP '2026-01-31 12:00:00.5'", datetime(2026, 1, 31, 12, 0, 0, 500_000)),  # noqa: DTZ001 - as cells are
        "b": ("DATE '2026-01-31'", datetime(2026, 1, 31, tzinfo=UTC).date()),
        "c": ("1.50::DECIMAL(9, 2)", Decimal("1.50")),
        "d": ("18446744073709551615::UBIGINT", 2**64 - 1),
        "e": ("'infinity'::DOUBLE", float("inf")),
        "f": ("'ab'::BLOB", b"ab"),
        "g": ("INTERVAL 90 SECOND", None),
        "h": ("{'x': 1}", {"x": 1}),
        "i": ("TRUE", True),
        "j": ("NULL::INTEGER", None),
        "k": ("MAP {DATE '2026-01-31': 2}", {"2026-01-31": 2}),
    }
    folder = tmp_path / "a=5"  # which is no column
    folder.mkdir()
    query = ", ".join(f"{made} AS {name}" for name, (made, _) in cells.items())
    with readers.open_file(parquet(folder / "a.parquet", f"SELECT {query}")) as reader:
        (record,) = reader
    read = dict(record.values)
    assert str(read.pop("g")) == "0:01:30"
    assert read == {name: cell for name, (_, cell) in cells.items() if name != "g"}


def test_a_zip_file_is_told_in_little_memory_whatever_is_in_it(tmp_path: Path) -> None:
    bomb = tmp_path / "a.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", bytes(32 * MEGABYTE))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for at in range(5000):
            archive.writestr(f"{at}.json", "")
    for name in ("a.zip", "b.zip"):
        assert formats.kind_of(tmp_path / name) is formats.ARCHIVE
        assert peak_of(tmp_path / name) < MEGABYTE


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.json", b"[" + orjson.dumps(stream(master_metadata_track_name=LONG)) + b"," + ENTRY + b"]", "spotify"),
        ("a.jsonl", orjson.dumps(LISTEN) + b"\n" + orjson.dumps(LISTEN | {"x": LONG}), "listenbrainz"),
        ("a.log", f"#AUDIOSCROBBLER/1.1\n{LONG}\nA\tB\tC\t1\t2\tL\t1714557600\t\n".encode(), "rockbox"),
        ("a.csv", f"artist,track,time\n{LONG},b,1\na,b,1714557600\n".encode(), "librefm"),
        ("a.csv", f"{LONG},b,c,01 May 2024 10:00\na,b,c,01 May 2024 10:00\n".encode(), "lastfm-to-csv"),
    ],
)
def test_rows_of_histories_above_a_mebibyte_are_refused_by_line(
    tmp_path: Path, name: str, content: bytes, form: str
) -> None:
    found = faults(histories.open_file(write(tmp_path / name, content), form))
    assert {fault for _, fault in found} == {TOO_LONG, None}
    assert len(found) == 2


@pytest.mark.slow
def test_rows_of_text_above_a_mebibyte_are_refused_by_line_and_the_next_goes_on(tmp_path: Path) -> None:
    cell = '"' + "x\n" * 50_000 + '",'
    rows = (f"{LONG}{LONG},2", f"{LONG}{LONG}", f'"{LONG}",2', cell * 11, f'1,"2\n3,4\n{LONG}\n"')
    for row in rows:
        found = faults(readers.open_file(write(tmp_path / "a.csv", f"a,b\n1,2\n{row}\n3,4\n")))
        assert found == [(2, None), (3, TOO_LONG), (4 + row.count("\n"), None)]
    found = faults(readers.open_file(write(tmp_path / "a.csv", f'a,b\n1,2\n{LONG},"2\n3,4\n')))
    assert found == [(2, None), (3, TOO_LONG), (4, None)]
    lines = f'{{"a": 1}}\n{{"a": "{LONG}"}}\n{{"a": 2}}\n'
    for packed in (lines.encode(), gzip.compress(lines.encode())):
        file = write(tmp_path / "a.jsonl", packed)
        assert faults(readers.open_file(file)) == [(1, None), (2, TOO_LONG), (3, None)]


@pytest.mark.slow
def test_an_upload_has_so_much_text_and_no_more(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", gzip.compress(b"a,b\n" + b"1,2\n" * 2**20))
    with readers.open_file(file, limits=Limits(text=2**23)) as reader:
        assert sum(1 for _ in reader) == 2**20
    blank = write(tmp_path / "b.csv", b"a,b\n1,2\n" + b" \n" * 2**16)
    for each in (file, blank):
        with (
            pytest.raises(Failure, match="more than 2 MiB of text, unpacked"),
            readers.open_file(each, limits=Limits(text=2**21)) as reader,
        ):
            list(reader)
    with pytest.raises(Failure, match="begins with too many blank lines"):
        readers.open_file(write(tmp_path / "b.csv", b"\n" * 20_000 + b"a,b\n"))


WIDE = [f"c{at}" for at in range(1001)]
WRITERS: dict[str, Any] = {
    "csv": lambda file, names: write(file, ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n"),
    "xlsx": lambda file, names: write_xlsx(file, [names, ["1"] * len(names)]),
    "parquet": lambda file, names: parquet(file, "SELECT " + ", ".join(f'1 AS "{name}"' for name in names)),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
def test_a_table_has_at_most_1000_columns_with_headings_of_255_characters(tmp_path: Path, form: str) -> None:
    def opened(names: list[str]) -> Reader:
        return readers.open_file(WRITERS[form](tmp_path / f"a.{form}", names))

    with opened(WIDE[:-1]) as reader:
        assert reader.columns == WIDE[:-1]
    with opened(["a", "y" * 255]) as reader:
        assert len(list(reader)) == 1
    with pytest.raises(Failure, match="has more than 1,000 columns"):
        opened(WIDE)
    with pytest.raises(Failure, match=f"has a heading of more than 255 characters, '{'y' * 80}…'"):
        opened(["a", "y" * 256])


def test_rows_of_json_have_as_many_keys_in_all_as_a_table_has_columns(tmp_path: Path) -> None:
    rows = [dict.fromkeys(WIDE[:600], 1), {"y" * 256: 1}, {"y" * 255: 1}, dict.fromkeys(WIDE[600:], 1), {"c0": 1}]
    file = write(tmp_path / "a.jsonl", b"".join(orjson.dumps(row) + b"\n" for row in rows))
    assert [fault for _, fault in faults(readers.open_file(file))] == [
        None,
        "a key is longer than 255 characters",
        None,
        "with the keys of this row, the file has more than 1,000 columns",
        None,
    ]


def test_the_program_ends_when_it_prints_nothing_or_the_import_stops(
    tmp_path: Path, bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "1")  # so that a new interpreter starts, and is silent meanwhile
    bounds(limited_wait=0.001)
    file = write_xlsx(tmp_path / "a.xlsx", [("a", "b"), ("1", "2")])
    with pytest.raises(StopError):
        limited.LimitedReader("workbooks", file, Limits(heed=stop), sheet=None)
    bounds(limited_silence=0)
    with pytest.raises(Failure, match="needs more than a gigabyte of memory or a minute to read"):
        limited.LimitedReader("workbooks", file, sheet=None)


def test_a_program_that_does_not_begin_is_not_told_as_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python_calamine.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = write_xlsx(tmp_path / "a.xlsx", [("a", "b"), ("1", "2")])
    with pytest.raises(
        Failure, match=r"a\.xlsx cannot be read: the program that reads such files does not work here\."
    ):
        limited.LimitedReader("workbooks", file, sheet=None)


BEGIN = """
import sys, time
from pathlib import Path
from musicsvc.store.importing.files.limited import LimitedReader
reader = LimitedReader("parquet", Path(sys.argv[1]))
print(reader._process.limited._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")
def test_the_program_ends_with_the_process_that_began_it_however_that_ends(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", "SELECT repeat('x', 1000) AS a FROM range(10000)")  # more than a pipe takes
    with subprocess.Popen([sys.executable, "-c", BEGIN, str(file)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    with suppress(ProcessLookupError):
        while not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0].startswith("Z"):
            os.kill(pid, 0)
            time.sleep(0.01)


def test_an_archive_unpacks_into_the_folder_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.json", b"[" + b",".join([ENTRY] * 2000) + b"]")
    reader = histories.open_file(tmp_path / "a.zip")
    next(iter(reader))
    assert list((tmp_path / "temporary").glob("*/a.json"))
    os.kill(reader._process.limited._process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    reader.close()
    assert list((tmp_path / "temporary").iterdir()) == []
