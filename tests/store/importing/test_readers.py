"""Readers of files: formats, damage, line numbers."""

import bz2
import csv
import gzip
import io
import json
import lzma
import string
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats, histories, readers
from musicsvc.store.importing.files import records as records_
from tests.support.workbooks import write_ole

Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(content: str | bytes, name: str = "file.csv") -> Path:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write


def records(file: Path, form: str | None = None) -> list[tuple[Any, ...]]:
    with readers.open_file(file, form) as reader:
        found = [tuple(record[:3]) for record in reader]
        assert reader.position == reader.size
        return found


def failure(file: Path, form: str | None = None) -> str:
    with pytest.raises(Failure) as failed:
        records(file, form)
    assert "\n" not in failed.value.message
    return failed.value.message


def test_csv_rows_bear_the_line_on_which_they_begin(written: Written) -> None:
    file = written('\ufeff\ufeffa,b\r\n1,"x\ny"\r\n\r\n2,"say ""hi"""\r\n')
    assert records(file) == [(2, {"a": "1", "b": "x\ny"}, None), (5, {"a": "2", "b": 'say "hi"'}, None)]


def test_gzip_is_told_by_its_first_bytes_whatever_the_name(written: Written) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    for name in ("file.csv.gz", "file.csv", "file"):
        assert records(written(packed, name)) == [(2, {"a": "1", "b": "2"}, None)]


def test_json_lines_are_objects_a_line_and_faults_stand_alone(written: Written) -> None:
    file = written('{"a": [1, null]}\n\n[1]\n{"a": \n{"a": "\\ud800"}\n\ufeff{"a": "last"}', "file.jsonl")
    assert records(file) == [
        (1, {"a": [1, None]}, None),
        (3, {"row": "[1]"}, "the line is not a JSON object"),
        (4, {"row": '{"a":'}, "the line is not valid JSON"),
        (5, {"row": '{"a": "\\ud800"}'}, "the line is not valid JSON"),
        (6, {"a": "last"}, None),
    ]


def test_parquet_rows_are_numbered_and_keep_their_types(tmp_path: Path) -> None:
    file = tmp_path / "it's [1]*.parquet"
    made = str(file).replace("'", "''")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS a, ['x', 'y'] AS b FROM range(2500) t(i)) TO '{made}' (FORMAT parquet)")
    found = records(file)
    assert len(found) == 2500
    assert found[-1] == (2500, {"a": 2499, "b": ["x", "y"]}, None)


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("x.CSV", b"{", "csv"),
        ("x.jsonl.gz", b"", "jsonl"),
        ("x.ndjson", b"", "jsonl"),
        ("x.parquet", b"", "parquet"),
        ("x", b'{"a": 1}\n', "jsonl"),
        ("x.txt", b"a,b\n", "csv"),
        ("x.txt", b"\na;b\n", "csv"),
        ("x.txt", b"a\tb\n", "csv"),
        ("x.tsv", b"a", "csv"),
        ("x", b"PAR1....", "parquet"),
        ("x", gzip.compress(b'{"a": 1}\n', mtime=0), "jsonl"),
    ],
)
def test_the_format_is_told_by_the_name_else_by_the_beginning(
    written: Written, name: str, content: bytes, form: str
) -> None:
    assert formats.format_of(written(content, name)) == form


HEADERS = {
    "ID3,artists\n": ["ID3", "artists"],  # words that other kinds of files begin with
    "Artists,WAVE\n": ["Artists", "WAVE"],
    "a;b;c\n": ["a", "b", "c"],
    "a\tb\n": ["a", "b"],
    '"a, or b; or c";b;"c"\n': ["a, or b; or c", "b", "c"],
    '"a; b","c\td",e\n': ["a; b", "c\td", "e"],
    "a (x; y),b,c\n": ["a (x; y)", "b", "c"],
    "a;b,c\n": ["a;b", "c"],
    "\ufeffa\n": ["a"],
    "\r\n a ; b \r\n": ["a", "b"],
    ";a;;": ["(column A)", "a", "(column C)", "(column D)"],
    "," * 27 + "a": [*(f"(column {letter})" for letter in (*string.ascii_uppercase, "AA")), "a"],
}


@pytest.mark.parametrize("header", HEADERS)
def test_the_separator_is_the_sign_that_makes_the_most_columns(written: Written, header: str) -> None:
    with readers.open_file(written(header)) as reader:
        assert reader.columns == HEADERS[header]


@pytest.mark.slow
@pytest.mark.parametrize("separator", [";", "\t"])
def test_real_songs_are_the_same_with_every_separator(
    shared_data: Callable[[str], Path], tmp_path: Path, separator: str
) -> None:
    songs = shared_data("spotify_songs/spotify_songs.csv.gz")
    other = tmp_path / "songs.txt"
    with gzip.open(songs, "rt", encoding="utf-8", newline="") as lines, other.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(csv.reader(lines))
    found = records(other)
    assert len(found) == 32_833
    assert found == records(songs)
    assert {"Khea;Omar Varela"} < {row[1]["track_artist"] for row in found}
    assert sum("," in row[1]["track_name"] for row in found) > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        '[{"a": 1}, {"a": [2]}, 7]',
        '\n [\n{"a": 1},\n{"a": [2]}, 7\n]',
        '{\n"page": 1, "of": ["x"], "list": [{"a": 1}, {"a": [2]}, 7]\n}\n',
        '{"list": [{"a": 1}, {"a": [2]}, 7]}',
        '{"success":true,"data":{"type":"x","rows":[{"a":1},{"a":[2]},7],"verification":{}}}',
        '{"success": true, "data": {"of": [{"b": 1}], "rows": [{"a": 1}, {"a": [2]}, 7]}}',
        f'[{{"a": 1}}, {{"a": [2]}}, 7{" " * (1 << 20)}]',
    ],
    ids=["line", "lines", "object", "one key", "export", "export with blanks", "long line"],
)
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_the_objects_of_a_json_array_are_rows(written: Written, content: str, name: str) -> None:
    for packed in (content.encode(), gzip.compress(b"\xef\xbb\xbf" + content.encode())):
        assert records(written(packed, name)) == [
            (1, {"a": 1}, None),
            (2, {"a": [2]}, None),
            (3, {"row": 7}, "the entry is not a JSON object"),
        ]


def test_a_row_that_begins_with_a_list_of_objects_is_a_row(written: Written) -> None:
    row = {"artists": [{"name": "Ann"}], "track": "Rag"}
    assert records(written(json.dumps(row) + "\n", "x.jsonl")) == [(1, row, None)]
    tracks = [{"track": "x" * 2_000}] * 600  # on one line, longer than a row can be
    assert len(records(written(json.dumps({"tracks": tracks}), "x.json"))) == len(tracks)


def test_a_json_object_over_several_lines_without_a_list_is_one_row(written: Written) -> None:
    assert records(written('{\n"a": 1\n}\n', "x.json")) == [(1, {"a": 1}, None)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{\n"a": [{"b": 1}], "c": [{"d": 2}]\n}', "is not a JSON array of objects. JSON Lines is expected"),
        ('[\n{"a": 1}\n', "is not valid JSON in UTF-8"),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n', "is not valid JSON in UTF-8"),
    ],
)
def test_a_json_document_without_rows_is_one_sentence(written: Written, content: str, message: str) -> None:
    assert message in failure(written(content, "x.json"))


def test_keys_of_a_json_array_are_bounded_as_those_of_json_lines(written: Written) -> None:
    rows = [{f"key {number}": 1} for number in range(records_.MOST_COLUMNS + 1)]
    *_, last = records(written(json.dumps(rows), "x.json"))
    assert last[2] == f"with the keys of this row, the file has more than {records_.MOST_COLUMNS:,} columns"


def test_a_format_that_cannot_be_told_is_asked_for(written: Written) -> None:
    assert "--format" in failure(written("hello\n", "x.txt"))


def test_a_row_of_another_length_is_a_fault_of_its_own(written: Written) -> None:
    file = written("a,b\n1,2\n1\n1,2,3\n3,4\n")
    assert [(line, fault) for line, _, fault in records(file)] == [
        (2, None),
        (3, "the row has 1 cells, the header 2"),
        (4, "the row has 3 cells, the header 2"),
        (5, None),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"a,b,a\n", "line 1 names the column 'a' twice; rename one"),
        ("a,b\n1,2\n宇多田,2\n".encode("shift_jis"), "line 3 is not UTF-8, and no guess at its encoding fits"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "is damaged or not UTF-16 after line 1"),
        (b"x" * 10_000_000 + b"\n", "line 1 cannot be read as CSV: the row is longer than 1 MiB"),
        (b'a,"b"c\n1,2\n', "line 1 cannot be read as CSV: text follows a closing quote"),
        (gzip.compress(b"a,b\n" + b"1,2\n" * 9, mtime=0)[:-12], "the gzip data end unexpectedly"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0) + b"trailing rubbish", "the gzip data end unexpectedly after line 2"),
    ],
)
def test_a_broken_file_is_one_clear_line(written: Written, content: bytes, told: str) -> None:
    assert told in failure(written(content))


def test_a_gzip_file_with_a_bit_turned_is_one_clear_line(written: Written) -> None:
    packed = bytearray(gzip.compress(b"a,b\n" + bytes(range(97, 110)) * 500 + b",2\n"))
    packed[len(packed) // 2] ^= 1
    assert "is damaged: the gzip data end unexpectedly" in failure(written(bytes(packed)))


def test_a_damaged_parquet_file_is_one_clear_line(written: Written) -> None:
    assert "cannot be read as Parquet" in failure(written(b"PAR1 and nothing", "x.parquet"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet", "none"):
        assert failure(tmp_path / name) == f"{tmp_path / name} cannot be read: No such file or directory."
    assert failure(tmp_path, "csv") == f"{tmp_path} is a folder. Import the files in it one by one."


def zipped(**members: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "/").replace("X", "."), content)
    return target.getvalue()


OPEN_DOCUMENT = "application/vnd.oasis.opendocument.text"
TABLE = "Import a table of the tracks instead."
LIST = "Export the playlist as CSV or as text, and import that."
SAVE = "Open it in the program that made it, and save the table as CSV or as an Excel workbook."
UNPACK = "Unpack it and import the files in it."
OTHERS = {
    b"%PDF-1.7 ...": f"a PDF document, which cannot be imported. {SAVE}",
    b"\x89PNG\r\n\x1a\n": f"an image (PNG), which cannot be imported. {TABLE}",
    bz2.compress(b"a,b"): f"a file compressed with bzip2, which cannot be imported. {UNPACK}",
    lzma.compress(b"a,b"): f"a file compressed with xz, which cannot be imported. {UNPACK}",
    b"{\\rtf1 ": f"a document (RTF), which cannot be imported. {SAVE}",
    b"ID3\3\0\0": "a music file (MP3), which cannot be imported. Import a table of the tracks instead.",
    b"\0\0\0\x18ftypheic": "an image (HEIC), which cannot be imported. Import a table of the tracks instead.",
    b"RIFF....WAVEfmt ": "a music file (WAV), which cannot be imported. Import a table of the tracks instead.",
    b"SQLite format 3\0": "an SQLite database, which cannot be imported. Export its tables as CSV and import those.",
    zipped(word_documentXxml="x"): f"a Word document, which cannot be imported. {SAVE}",
    zipped(Index_DocumentXiwa="x"): "a document of Numbers, Pages or Keynote, which cannot be imported."
    " In Numbers, choose File, Export To, CSV, and import that.",
    zipped(mimetype=OPEN_DOCUMENT): f"an OpenDocument file, which cannot be imported. {SAVE}",
    zipped(songsXcsv="a,b"): f"a zip archive, which cannot be imported. {UNPACK}",
    zipped(): f"a zip archive, which cannot be imported. {UNPACK}",
    "\ufeff\n<!DOCTYPE html><html>".encode(): f"a web page (HTML), whatever its name, which cannot be imported. {SAVE}",
    "<table><tr>".encode("utf-16"): f"a web page (HTML), whatever its name, which cannot be imported. {SAVE}",
    b'<?xml version="1.0"?><Workbook>': f"an XML document, which cannot be imported. {SAVE}",
    b'<?xml version="1.0"?>\n<DJ_PLAYLISTS Version="1.0.0">': "a library of rekordbox (XML), which cannot be imported."
    " Export its playlists as text (*.txt).",
    b'<?xml version="1.0"?>\n<NML VERSION="19">': "a collection of Traktor (NML), which cannot be imported."
    " In Traktor, save each playlist as a web page. Open it in a spreadsheet program, and save the table as CSV.",
    b'<?xml version="1.0"?><!DOCTYPE plist><plist version="1.0">': "a library of Apple Music or iTunes, or another"
    " property list (XML), which cannot be imported."
    " Choose File, Library, Export Playlist, and text as the format, and import that.",
    b'<playlist version="1" xmlns="http://xspf.org/ns/0/">': f"a playlist in XSPF, which cannot be imported. {LIST}",
    b'{\n "playlist": {"title": "M", "track": [{"title": "Rag"}]}}': "a playlist in JSPF, which cannot be imported."
    " Save its list track as a JSON array, in which creator is called artist.",
    b'PERFORMER "Ann"\r\nFILE "a.wav" WAVE\r\n  TRACK 01 AUDIO': "a cue sheet, which cannot be imported."
    " Write artists and titles into a table, and import that.",
    b"#EXTM3U\n#EXTINF:225,Ann - Rag\na.mp3\n": f"a playlist of files (M3U or PLS), which cannot be imported. {LIST}",
    gzip.compress(b"%PDF-1.7"): "a PDF document, compressed with gzip, which cannot be imported."
    " Unpack it first: gunzip FILE",
    gzip.compress(b"PAR1"): "a Parquet file, compressed with gzip, which cannot be imported."
    " Unpack it first: gunzip FILE",
}


@pytest.mark.slow
@pytest.mark.parametrize("content", OTHERS, ids=lambda content: OTHERS[content].partition(",")[0])
def test_a_file_of_another_kind_says_what_it_is_and_what_to_do(written: Written, content: bytes) -> None:
    for name in ("a.csv", "a.xls", "a.jsonl", "a"):
        file = written(content, name)
        for opened in (readers.open_file, histories.open_file):
            if opened is readers.open_file or "zip archive" not in OTHERS[content]:
                with pytest.raises(Failure) as failed:
                    opened(file)
                assert failed.value.message == f"{file} is {OTHERS[content].replace('FILE', name)}"


def test_files_that_may_lack_a_beginning_are_known_by_their_names(written: Written) -> None:
    for content, name in (('{"doc_id": "1"}', "a.gsheet"), ('{"doc_id": "1", "email": "a@example.com"}', "a.json")):
        assert failure(written(content, name)).endswith("choose File, Download, CSV, and import that.")
    assert records(written('{"doc_id": 1}', "a.jsonl")) == [(1, {"doc_id": 1}, None)]
    assert failure(written("Ann/Rag.mp3\n", "a.M3U8")).endswith(f"(M3U or PLS), which cannot be imported. {LIST}")


def test_an_old_document_of_office_says_that_it_is_no_workbook(tmp_path: Path) -> None:
    for stream, told in (("WordDocument", "a Word document"), ("PowerPoint Document", "an Office document")):
        assert f"is {told}, which cannot be imported" in failure(write_ole(tmp_path / "a.xls", {stream: b"x"}))


@pytest.mark.slow
def test_text_in_utf_16_is_read_like_any_other(written: Written) -> None:
    text = "a\tb\r\nä\t𝄞\r\n" + "x\ty\r\n" * 40_000
    plain = records(written(text.encode(), "plain.txt"))
    for encoding in ("utf-16-le", "utf-16-be"):
        raw = ("\ufeff" + text).encode(encoding)
        for content in (raw, gzip.compress(raw)):
            assert records(written(content, "wide.txt")) == plain
    assert records(written('\ufeff{"a": "ä"}\n'.encode("utf-16-be"), "x")) == [(1, {"a": "ä"}, None)]


def test_a_format_that_there_is_not_is_refused(written: Written) -> None:
    assert "csv, jsonl, parquet" in failure(written("a,b\n"), "xml")
