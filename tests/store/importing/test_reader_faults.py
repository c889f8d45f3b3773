"""Files that cannot be read to their end, and readers that are closed."""

import gzip
import io
import os
import resource
import sys
import zipfile
from pathlib import Path

import duckdb
import orjson
import pytest

from musicsvc.errors import Failure
from musicsvc.store.importing.files import histories, quoting, readers
from musicsvc.store.importing.files.histories import archives, detection, documents
from musicsvc.store.importing.files.records import Reader
from musicsvc.store.importing.files.texts import CsvReader
from musicsvc.store.importing.files.unpacking.parquet import connect
from tests.store.importing.test_histories import CASES
from tests.support.history_files import LISTEN, read, write
from tests.support.open_files import open_files

LONG = "x" * 131_073


def failure(file: Path, form: str | None = None) -> str:
    with pytest.raises(Failure) as failed:
        read(file, form)
    return failed.value.message


def packed(*names: str) -> bytes:
    """Return a zip file with members of these names, each with a play of ListenBrainz."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for at, name in enumerate(names):
            archive.writestr(name, orjson.dumps(LISTEN | {"listened_at": 1_714_557_600 + at}))
    return target.getvalue()


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    file = tmp_path / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT md5(i::text) AS artist, i AS track FROM range(9000) t(i)) TO '{file}'"
            " (FORMAT parquet, ROW_GROUP_SIZE 2048)"
        )
    return file


@pytest.mark.parametrize(
    ("name", "form", "head", "row", "reason"),
    [
        ("a.csv", "csv", "artist,track\n", "Ann,…", None),
        ("a.csv", "csv", "artist,track\n", 'Ann,"…"', None),
        ("a.csv", "lastfm-csv", "uts,artist,track\n", "1714557600,Ann,…", None),
        ("a.csv", "lastfm-to-csv", "", 'Ann,"…",Rag,01 May 2024 10:00', None),
        ("a.csv", "librefm", "# A comment\nartist,track,time\n", 'Ann,"…"x,1', quoting.TORN),
        ("a.csv", "spinitron", "Date-time,Artist,Song\n", '2024-05-01T05:00:00-0500,Ann,"…"', None),
    ],
)
def test_a_cell_may_be_as_long_as_a_row(
    tmp_path: Path, name: str, form: str, head: str, row: str, reason: str | None
) -> None:
    file = write(tmp_path / name, f"{head}{row.replace('…', LONG)}\n")
    opened = readers.open_file if form == "csv" else histories.open_file
    with opened(file, form) as reader:
        (found,) = reader
    assert found.fault == reason
    assert any(LONG in each for each in found.values.values())
    assert detection.history_of(write(tmp_path / "head", f"{LONG},time")) is None


def test_the_first_of_several_columns_that_occur_twice_is_named(tmp_path: Path) -> None:
    names = [f"c{at}" for at in range(20)]
    file = write(tmp_path / "a.csv", ",".join([*reversed(names), *names]) + "\n")
    with pytest.raises(Failure) as failed:
        readers.open_file(file)
    assert failed.value.message == f"{file}: line 1 names the column 'c0' twice; rename one."


def test_a_parquet_file_that_is_damaged_in_the_middle_is_one_sentence(parquet: Path) -> None:
    raw = bytearray(parquet.read_bytes())
    middle = len(raw) * 7 // 10
    raw[middle : middle + 3000] = b"\xff" * 3000
    file = write(parquet.with_name("damaged.parquet"), bytes(raw))
    found = []

    def collect(reader: Reader) -> None:
        for record in reader:
            found.append(record.line)  # noqa: PERF401 - the rows before the damage are of interest

    with readers.open_file(file) as reader, pytest.raises(Failure) as failed:
        collect(reader)
    assert failed.value.message == f"{file} is damaged: it cannot be read after row {len(found)}."


def test_parquet_is_read_within_bounds_and_without_downloads(tmp_path: Path) -> None:
    with connect(str(tmp_path)) as connection:
        names = ("threads", "memory_limit", "autoinstall_known_extensions")
        query = ", ".join(f"current_setting('{name}')" for name in names)
        assert connection.execute(f"SELECT {query}").fetchone() == (1, "244.1 MiB", False)


@pytest.mark.parametrize("form", [None, "maloja", "rockbox"])
def test_a_gzipped_history_that_breaks_off_at_once_is_damaged(tmp_path: Path, form: str | None) -> None:
    file = write(tmp_path / "a.jsonl.gz", b"\x1f\x8b\x08\x00rest")
    assert "is damaged: the gzip data end unexpectedly" in failure(file, form)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/mem can be opened and not be read")
def test_a_disk_error_is_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.symlink_to("/proc/self/mem")
    for form in ("csv", "maloja", "rockbox"):
        assert failure(broken, form) == f"{broken} cannot be read: Input/output error."
    with pytest.raises(Failure, match=r"broken\.csv cannot be read: Input/output error"):
        detection.history_of(broken)

    file = write(tmp_path / "a.csv", "a,b\n" + "1,2\n" * 500_000)
    with CsvReader(file) as reader, file.open("ab") as for_writing:
        os.dup2(for_writing.fileno(), reader._lines._file.fileno())
        with pytest.raises(Failure) as failed:
            list(reader)
    assert failed.value.message == f"{file} cannot be read: Bad file descriptor."


@pytest.mark.slow
def test_members_of_an_archive_are_read_by_their_ending(tmp_path: Path) -> None:
    names = [f"{ending}/a{ending}" for ending in (".json", ".jsonl", ".csv", ".log", ".txt", ".GZ")]
    long = [f"{'a folder/' * 9}{number}.json" for number in (1, 2)]
    file = write(tmp_path / "a.zip", packed(*names, *long, "a.html", "b/.json.html", "c"))
    with histories.open_file(file) as reader:
        found = [record.member for record in reader]
        assert found == [*sorted(names), *(f"…{name[-80:]}" for name in long)]
        assert reader.position == reader.size
    with histories.open_file(file, "maloja") as reader, pytest.raises(Failure, match="not a Maloja export"):
        list(reader)
    assert read(file, "listenbrainz") == read(file)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "b.json.gz",
            gzip.compress(orjson.dumps(LISTEN))[:-12],
            "is damaged: the gzip data end unexpectedly after line 0",
        ),
        ("b.json", orjson.dumps(LISTEN)[:-1], "is not valid JSON in UTF-8"),
    ],
)
def test_a_damaged_member_of_an_archive_is_named(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    file = write(tmp_path / "a.zip", packed("a.json"))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"folder/{name}", content)
    assert failure(file).startswith(f"{file}: folder/{name} {reason}")


def test_an_archive_with_a_password_is_told_as_such(tmp_path: Path) -> None:
    locked = bytearray(packed("a.json"))
    for begin, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        locked[locked.index(begin) + flags] |= 1
    file = write(tmp_path / "a.zip", bytes(locked))
    assert failure(file) == f"{file} has a password. Unpack it and import the files in it."


def test_an_archive_for_which_the_disk_is_full_is_not_damaged(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * 2**23)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**22, before[1]))  # for the process that reads it, too
    try:
        found = failure(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found == f"{file} cannot be read: File too large."


def test_no_file_is_too_large_that_the_documentation_allows() -> None:
    assert (documents.LARGEST, archives.LARGEST) == (512 * 2**20, 2**30)
    assert detection.HEAD == 2**16


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process in /proc")
def test_a_closed_reader_has_no_open_file(tmp_path: Path, parquet: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    files: list[tuple[Path, str | None]] = [
        (write(folder / f"{at}-{CASES[case][0]}", CASES[case][1]), None) for at, case in enumerate(CASES)
    ]
    files += [(write(folder / "zipped.zip", packed("a.json")), None), (parquet, "parquet")]
    files += [(write(folder / "packed.csv.gz", gzip.compress(b"a,b\n1,2\n")), "csv")]
    files += [(write(folder / "a.jsonl", '{"a": 1}\n'), "jsonl")]
    for file, form in files:
        reader = histories.open_file(file, form)
        reader.close()
        assert open_files(tmp_path) == []
