"""Tables in text, however they are written: separators, quotes, line ends, encodings, rows above the headings."""

import csv
import gzip
import io
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc.errors import Failure
from musicsvc.limited import Pause
from musicsvc.store.importing.files import encodings, quoting, readers
from musicsvc.store.importing.files.records import TOO_LONG
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.workbooks import write_xlsx

HEADINGS = ["id", "track", "artist"]
SOUND = [["b1", "One", "Band"], ["b3", "Three", "Band"]]
Table = list[list[str]]
Written = Callable[[str | bytes], Path]
LONGEST = 128 * 1024  # characters of a row in the tests of time and memory, in place of a mebibyte


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(content: str | bytes) -> Path:
        file = tmp_path / "songs.csv"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write


def rows(file: Path, encoding: str | None = None) -> Table:
    """Return the cells of the rows that can be read, after the headings."""
    with readers.open_file(file, encoding=encoding) as reader:
        return [reader.columns or [], *([*row.values.values()] for row in reader if row.fault is None)]


def faults(file: Path) -> list[tuple[int, str]]:
    with readers.open_file(file) as reader:
        return [(row.line, row.fault) for row in reader if row.fault is not None]


def joined(table: Table, sign: str = ",", end: str = "\n") -> str:
    return "".join(sign.join(row) + end for row in table)


# Each file is [HEADINGS, *SOUND].
DIALECTS: dict[str, str | bytes] = {
    "the first line for Excel": "sep=;\n" + joined([HEADINGS, *SOUND], ";"),
    "that line in quotes": '"sep=|"\r\n' + joined([HEADINGS, *SOUND], "|", "\r\n"),
    "that line with another sign": "sep=^\n" + joined([HEADINGS, *SOUND], "^"),
    "that line with a tab": "sep=\t\r" + joined([HEADINGS, *SOUND], "\t", "\r"),
    "carriage returns": joined([HEADINGS, *SOUND], ",", "\r"),
    "two carriage returns": joined([HEADINGS, *SOUND], ",", "\r\r\n"),
    "pipes": joined([HEADINGS, *SOUND], "|"),
    "blanks behind the separators": joined([HEADINGS, *SOUND], ", "),
    "quotes behind blanks": 'id, "track" , "artist"\nb1 , "One", "Band"\n b3, "Three" ,"Band" \n',
    "UTF-16": joined([HEADINGS, *SOUND]).encode("utf-16"),
    "UTF-16 without a mark": joined([HEADINGS, *SOUND], "\t", "\r\n").encode("utf-16-le"),
    "UTF-16 the other way round": joined([HEADINGS, *SOUND], ";").encode("utf-16-be"),
    "UTF-16 with carriage returns": joined([HEADINGS, *SOUND], ";", "\r").encode("utf-16-le"),
    "UTF-8 with a mark": "\ufeff" + joined([HEADINGS, *SOUND]),
    "a mark and a first line for Excel": "\ufeffsep=;\r\n" + joined([HEADINGS, *SOUND], ";"),
    "a title": "My songs\n\n" + joined([HEADINGS, *SOUND]),
    "a title with commas": "My songs, of 2026\nby Ann Example, for all\n" + joined([HEADINGS, *SOUND], ";"),
    "a title as wide as the table": "My songs,,\n,,\n" + joined([HEADINGS, *SOUND]),
    "a block of two columns": "Station,Radio\nDay,Monday\n\n" + joined([HEADINGS, *SOUND, SOUND[0], SOUND[0]]),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_table_is_read_however_it_is_written(written: Written, dialect: str) -> None:
    content = DIALECTS[dialect]
    raw = content.encode() if isinstance(content, str) else content
    for packed in (raw, gzip.compress(raw)):
        found = rows(written(packed))
        assert [[cell.strip() for cell in row] for row in found][:3] == [HEADINGS, *SOUND]


def test_rows_above_the_headings_are_named_and_lines_are_those_of_the_file(tmp_path: Path, written: Written) -> None:
    table = [["My songs"], ["by Ann Example"], HEADINGS, *SOUND]
    said = ["Left out above the headings: lines 1, 2."]
    for file in (written(joined(table)), write_xlsx(tmp_path / "a.xlsx", table)):
        with readers.open_file(file) as reader:
            assert (reader.columns, [row.line for row in reader]) == (HEADINGS, [4, 5])
            assert [each.what for each in reader.remarks] == said


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("artist,track\n" + "Ann, Bob, Cid and Dan,Song\n" * 5 + "Ann,Song\n" * 5, ["artist", "track"]),
        ("artist,track\nAnn, Bob, Cid and Dan,Song\n", ["artist", "track"]),
        ("track;artist\n1,5;2,5\n3,5;4,5\n", ["track", "artist"]),
        ("track;genre\nA;x,y,z\nB;x,y,z\n", ["track", "genre"]),
        ("id,genre\n1,rock|pop\n2,a|b\n", ["id", "genre"]),
        ("track\nOne\nTwo, three\nFour\n", ["track"]),
    ],
)
def test_rows_with_too_many_cells_do_not_move_the_headings(written: Written, table: str, columns: list[str]) -> None:
    with readers.open_file(written(table)) as reader:
        assert reader.columns == columns


# Between sound rows: what is read of the others, and which lines are refused.
TORN = {
    'b2,"7" Mix",Band': ([], [(3, quoting.TORN)]),
    'b2,"Two"x,Band': ([], [(3, quoting.TORN)]),
    'b2,"Two,Band': ([], [(3, quoting.OPEN)]),
    '"b2,Two,Band': ([], [(3, quoting.OPEN)]),
    'b2,Two,"Band': ([["b2", "Two", "Band"]], []),
    'b2,Two,"7"" Mix': ([["b2", "Two", '7" Mix']], []),
    'b2,7" Mix,Band': ([["b2", '7" Mix', "Band"]], []),
    'b2,Two,"Ba\nnd"': ([["b2", "Two", "Ba\nnd"]], []),
    'b2,Two,"Ba\nnd"x': ([["b2", "Two", "Ba"]], [(4, "the row has 1 cells, the header 3")]),
    'b2,Two,"\nb4,"Two",Band': ([["b2", "Two", ""], ["b4", "Two", "Band"]], []),
    'b2,"T\nwo","Ba\n\nnd"': ([["b2", "T\nwo", "Ba\n\nnd"]], []),
}


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_row_with_wrong_quotes_is_refused_by_line_and_the_rest_is_read(written: Written, torn: str, end: str) -> None:
    read, refused = TORN[torn]
    file = written(joined([HEADINGS, SOUND[0], [torn], SOUND[1]]).replace("\n", end))
    assert rows(file) == [HEADINGS, SOUND[0], *([cell.replace("\n", end) for cell in row] for row in read), SOUND[1]]
    assert faults(file) == refused


def test_the_text_of_a_refused_row_is_kept(written: Written) -> None:
    for torn, cells in (
        ('b2,"7" Mix",Band', dict(zip(HEADINGS, ["b2", '"7" Mix"', "Band"], strict=True))),
        ('b2,"x', {}),
    ):
        with readers.open_file(written(joined([HEADINGS, SOUND[0], [torn], SOUND[1]]))) as reader:
            (found,) = [row.values for row in reader if row.fault]
        assert found == {"row": torn} | cells


# Between tabs a quote that is not closed on its line is a sign like others; but Excel writes cells of several lines.
@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ('b2\t"\tBand', ["b2", '"', "Band"]),
        ('b2\t"7 Mix\tBand', ["b2", '"7 Mix', "Band"]),
        ('b2\t7" Mix\tBand', ["b2", '7" Mix', "Band"]),
        ('b2\t"7" Mix"\tBand', ["b2", '"7" Mix"', "Band"]),
        ('b2\tTwo\t"Band', ["b2", "Two", '"Band']),
        ('b2\t"Two"\t"Ba""nd"', ["b2", "Two", 'Ba"nd']),
        ('b2\t"Tw\to"\tBand', ["b2", "Tw\to", "Band"]),
        ('b2\t"Tw\no"\tBand', ["b2", "Tw\no", "Band"]),
        ('b2\tTwo\t"Ba\nnd"', ["b2", "Two", "Ba\nnd"]),
    ],
)
def test_between_tabs_quotes_are_signs_unless_they_are_pairs(written: Written, line: str, cells: list[str]) -> None:
    table = joined([HEADINGS, SOUND[0]], "\t") + 2 * f"{line}\n" + joined([SOUND[1]], "\t")
    assert rows(written(table)) == [HEADINGS, SOUND[0], cells, cells, SOUND[1]]


NAMES = "Björk, Beyoncé, Sigur Rós, Françoise Hardy, Ólafur Arnalds, “Heroes”, Don’t Stop, Señorita, BJÖRK, Straße"
CENTRAL = "Myslovitz, Długość dźwięku samotności; Łąki Łan; Żywiołak; Gdańsk"


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        *((name, codec, label) for name in NAMES.split(", ") for codec, label in (("cp1252", "Windows-1252"),)),
        *((name, "mac-roman", "Mac Roman") for name in NAMES.split(", ") if name[0] != "Ó"),
        (NAMES, "cp1252", "Windows-1252"),
        (NAMES, "mac-roman", "Mac Roman"),
        (CENTRAL, "cp1250", "Windows-1250"),
    ],
)
def test_an_encoding_that_is_not_utf_8_is_guessed_and_said(written: Written, text: str, codec: str, label: str) -> None:
    table = f"id;track\n1;plain\n2;{text.replace(';', ',')}\n"
    for content in (table, "id;track\n" + "3;plain\n" * 2_000 + "2;" + text.replace(";", ",") + "\n"):
        with readers.open_file(written(content.encode(codec))) as reader:
            *_, last = reader
            assert last.values["track"] == text.replace(";", ",")
            assert reader.encoding == label
            assert [each.what for each in reader.remarks] == [f"The file is not UTF-8 and was read as {label}."]


def test_old_macs_end_lines_otherwise_and_that_decides_between_two_encodings(written: Written) -> None:
    raw = "id,track\n1,Ólafur\n".encode("mac-roman")
    assert rows(written(raw)) == [["id", "track"], ["1", "îlafur"]]  # it could be
    assert rows(written(raw.replace(b"\n", b"\r"))) == [["id", "track"], ["1", "Ólafur"]]


@pytest.mark.parametrize("codec", ["shift_jis", "gb18030", "cp1251", "big5"])
def test_what_cannot_be_guessed_can_be_named(written: Written, codec: str) -> None:
    names = {"shift_jis": "宇多田ヒカル", "gb18030": "周杰伦 七里香", "cp1251": "Земфира, Ария", "big5": "周杰倫"}
    file = written(f'id;track\n1;"{names[codec]}"\n'.encode(codec))
    with pytest.raises(Failure, match="line 2 is not UTF-8, and no guess at its encoding fits"):
        rows(file)
    assert rows(file, codec) == [["id", "track"], ["1", names[codec]]]


def test_a_line_in_another_encoding_than_the_file_is_refused(written: Written) -> None:
    file = written("id,track\n1,ä\n".encode() + b"2,\xff\n" + "3,ö\n".encode())
    assert (rows(file), faults(file)) == ([["id", "track"], ["1", "ä"], ["3", "ö"]], [(3, "the line is not UTF-8")])
    mixed = written(b"id,track\n2,\xff\n" + "3,ö\n4,ß\n".encode())
    assert faults(mixed) == [(2, "the line is not UTF-8")]
    named = written("id,track\n1,あ\n".encode("shift_jis") + b"2,\xff\n")
    with readers.open_file(named, encoding="shift_jis") as reader:
        assert [row.fault for row in reader] == [None, "the line is not Shift_JIS"]
    for wrong in ("utf-16", "utf-16-le"):
        with pytest.raises(Failure, match=r"is damaged or not UTF-16"):
            rows(written("id,track\n1,é\n2,ü\n"), wrong)


def test_a_line_with_a_nul_makes_no_file_utf_16(written: Written) -> None:
    for end in ("\0\n", "\0"):
        for more in ("", "x"):  # the NUL at an even place, and at an odd one
            file = written(f"id,track{more}\n1,a\n2,b{end}")
            assert rows(file)[:2] == [["id", f"track{more}"], ["1", "a"]]


@pytest.mark.parametrize(
    "name", ["rot13", "zip", "idna", "punycode", "unicode_escape", "utf-7", "hex", "", "x" * 300, "\0"]
)
def test_only_encodings_of_text_have_names(name: str) -> None:
    with pytest.raises(Failure, match="There is no encoding"):
        encodings.named(name)


def test_encodings_have_many_names() -> None:
    named = {
        "Windows-1252": "cp1252",
        "latin1": "iso8859-1",
        "MacRoman": "mac-roman",
        "UTF-8": "utf-8",
        "SJIS": "shift_jis",
    }
    assert {name: encodings.named(name) for name in named} == named
    assert all(encodings.named(name) == name for name in encodings.ENCODINGS)


CELL = st.text(st.sampled_from("aBé ø0,;|\t\"'\n\r=€’"), max_size=8).map(str.strip)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    width=st.integers(2, 5),
    sign=st.sampled_from(",;|\t"),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quotes=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    excel=st.booleans(),
    titles=st.lists(st.sampled_from(["My songs", "2026", "x"]), max_size=3),
)
def test_what_was_written_is_read(  # noqa: PLR0917 - what is drawn
    written: Written,
    data: st.DataObject,
    width: int,
    sign: str,
    end: str,
    quotes: int,
    codec: str,
    excel: bool,
    titles: list[str],
) -> None:
    # Between tabs a cell has line breaks or tabs. Three columns that are always filled make a table of the rows.
    # Other separators may look like that of the table, unless its first line names it.
    without = ("" if excel else quoting.SEPARATORS.replace(sign, "")) + ("\n\r" if sign == "\t" else "")
    cell = CELL.map(lambda text: text.translate(dict.fromkeys(map(ord, without))).strip())
    cells = st.lists(cell, min_size=width, max_size=width).map(lambda row: ["x", "y", "z", *row])
    table = data.draw(st.lists(cells, min_size=2 + 2 * len(titles), max_size=12))
    headings = [f"column {at}" for at in range(width + 3)]
    if end != "\r\n":  # the csv module quotes no line breaks other than its own
        quotes = csv.QUOTE_ALL
    text = io.StringIO(newline="")
    text.write(f"sep={sign}{end}" * excel + "".join(title + end for title in titles))
    csv.writer(text, delimiter=sign, lineterminator=end, quoting=quotes).writerows([headings, *table])  # type: ignore[arg-type]
    file = written(text.getvalue().encode(codec))
    assert [[cell.strip() for cell in row] for row in rows(file)] == [headings, *table]
    assert faults(file) == []


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from('ab,"\n'), max_size=80), st.sampled_from(",\t"))
def test_whatever_quotes_a_table_has_its_other_rows_are_read(written: Written, torn: str, sign: str) -> None:
    sound = [["s", "s", "s"]] * 3
    table = joined([HEADINGS, *sound], sign) + torn.replace(",", sign) + '\nx"y\n' + joined(sound, sign)
    with readers.open_file(written(table)) as reader:
        found = [(row.line, [*row.values.values()]) for row in reader]
    assert [cells for _, cells in found][:3] == sound
    lines = table.count("\n")
    assert {number for number, _ in found} <= set(range(2, lines + 1))
    assert sorted(number for number, _ in found) == [number for number, _ in found]


ATTACKS: dict[str, Callable[[int], str]] = {
    "quotes only": lambda size: '"' * size,
    "lines that open quotes": lambda size: 'a,b,"c\n' * (size // 7),
    "lines that close one and open one": lambda size: 'a,b","c\n' * (size // 8),
    "those between tabs": lambda size: 'a\tb"\t"c\n' * (size // 8),
    "one that opens a quote": lambda size: 'a,b,"c\n' + "a,b,c\n" * (size // 6),
    "pairs of quotes": lambda size: 'a,"' + '""' * (size // 2),
    "pairs on lines": lambda size: 'a,"""b\n' + '""""\n' * (size // 5),
    "empty lines in quotes": lambda size: 'a,"' + "\n" * size,
    "separators": lambda size: '"' + "," * size,
    "blanks": lambda size: 'a, "b' + " " * size,
    "carriage returns": lambda size: '"\r' * (size // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_quotes_take_a_time_that_is_linear_in_the_file(written: Written, bounds: Bounds, attack: str) -> None:
    bounds(longest_line=LONGEST, longest_row=LONGEST)

    def cost(size: int) -> float:
        sign = "\t" if "tabs" in attack else ","
        file = written(joined([HEADINGS, *SOUND, *SOUND], sign) + ATTACKS[attack](size))
        began = time.process_time()
        with readers.open_file(file) as reader:
            for _ in reader:
                pass
        return time.process_time() - began

    small = max(cost(LONGEST // 4), 0.01)
    assert cost(3 * LONGEST // 2) < 6 * 3 * small


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["quotes only", "empty lines in quotes", "one that opens a quote"])
def test_quotes_take_little_memory(written: Written, bounds: Bounds, attack: str) -> None:
    bounds(longest_line=LONGEST, longest_row=LONGEST)
    file = written(joined([HEADINGS, *SOUND]) + ATTACKS[attack](3 * LONGEST // 2))
    tracemalloc.start()
    try:
        with readers.open_file(file) as reader:
            for _ in reader:
                pass
        assert tracemalloc.get_traced_memory()[1] < 40 * LONGEST
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_row_that_is_too_long_is_one_row(written: Written) -> None:
    long = '"' + "lorem ipsum\n" * 100_000 + '"'
    file = written(joined([HEADINGS, SOUND[0], ["b2", "Two", long], SOUND[1]]))
    assert (rows(file), faults(file)) == ([HEADINGS, *SOUND], [(3, TOO_LONG)])
    with readers.open_file(written(joined([HEADINGS, SOUND[0]]) + 'a,b,"c' + "\n" * 500_000)) as reader:
        assert sum(step is Pause.FULL for step in reader.steps()) > 4  # in which an import can be stopped
    lost = written(joined([HEADINGS, SOUND[0], ["b2", '"Two', "Band"], *([SOUND[1]] * 100_000)]))
    assert (len(rows(lost)), faults(lost)) == (100_002, [(3, quoting.OPEN)])
