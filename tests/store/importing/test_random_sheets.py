"""Random sheets in all notations of cells: what they say is what plain values say, or the account names what is not."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.cells import codes, dates, durations, numbers, words
from musicsvc.store.importing.cells.notations import Notation
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.files.records import Record
from tests.support.examples import examples
from tests.support.workbooks import write_xlsx

KINDS: dict[str, tuple[Notation, ...]] = {
    "release_date": dates.NOTATIONS,
    "duration_ms": durations.NOTATIONS,
    "bpm": numbers.NOTATIONS,
    "track_number": numbers.PLACES,
    "explicit": words.FLAG_NOTATIONS,
    "key": words.KEY_NOTATIONS,
    "scale": words.SCALE_NOTATIONS,
    "isrc": codes.ISRCS,
    "upc": codes.UPCS,
}
UNITS = {
    "frames": "Length (mm:ss:ff)",
    "milliseconds": "Length (ms)",
    "minutes": "Length (min)",
    "seconds": "Length (sec)",
}
DIALECTS = {"a.csv": ",", "b.csv": ";", "c.tsv": "\t", "d.csv": "|"}


@some.composite
def sheets(draw: some.DrawFn) -> tuple[list[list[str]], list[dict[str, str]], str]:
    """Return a table, its rows in plain form by field, and the name of a file for it."""
    count = draw(some.integers(2, 5))
    fields = draw(some.lists(some.sampled_from([*KINDS]), min_size=5, unique=True))
    columns = [("Title", [(f"T{at}", f"T{at}") for at in range(count)], "track")]
    columns.append(("Artist", [("Ann", "Ann")] * count, "artist"))
    columns.append(("Album", [(f"A{at}", f"A{at}") for at in range(count)], "album"))
    for field in fields:
        notation = draw(some.sampled_from([each for each in KINDS[field] if each.form != "either"]))  # asked for
        names = [field, *(each.strip() for each in headings.CATALOG[field].split(","))]
        heading = UNITS.get(notation.form) or draw(some.sampled_from(names)).title()
        examples = list(notation.cells.items())
        columns.append((heading, draw(some.lists(some.sampled_from(examples), min_size=count, max_size=count)), field))
    columns = draw(some.permutations(columns))
    table = [
        [heading for heading, _, _ in columns],
        *([cells[at][0] for _, cells, _ in columns] for at in range(count)),
    ]
    plain = [{field: cells[at][1] for _, cells, field in columns} for at in range(count)]
    return table, plain, draw(some.sampled_from([*DIALECTS, "e.jsonl", "f.xlsx"]))


def write(file: Path, table: list[list[str]]) -> None:
    if file.suffix == ".xlsx":
        write_xlsx(file, table)
    elif file.suffix == ".jsonl":
        file.write_bytes(b"".join(orjson.dumps(dict(zip(table[0], row, strict=True))) + b"\n" for row in table[1:]))
    else:
        with file.open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines, delimiter=DIALECTS[file.name]).writerows(table)


def read(file: Path) -> tuple[list[rows.CatalogRow], set[str]]:
    """Return the rows of a file, and the fields of which the account names something that is missing."""
    columns = Columns(rows.FIELDS, (), headings.CATALOG)
    found, missing = [], set()
    with readers.open_file(file) as reader:
        for at, record in enumerate(step for step in columns.fit(reader) if isinstance(step, Record)):
            cells = columns.read(record.values, ())
            found.append(rows.parse(at, cells)._replace(notes=()))
            missing |= {name for name, _, _ in cells.left_out}
    return found, missing | {each.field for each in columns.unread.values()}


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(sheets())
def test_a_sheet_says_what_plain_values_say_or_the_account_names_what_is_missing(
    sheet: tuple[list[list[str]], list[dict[str, Any]], str],
) -> None:
    table, plain, name = sheet
    with TemporaryDirectory() as folder:
        file = Path(folder) / name
        write(file, table)
        write(
            Path(folder) / "e.jsonl" if name != "e.jsonl" else file.with_name("g.jsonl"),
            [[*plain[0]], *([*row.values()] for row in plain)],
        )
        found, missing = read(file)
        expected, _ = read(Path(folder) / ("e.jsonl" if name != "e.jsonl" else "g.jsonl"))
    plain_names = {"release_date": "release_date", "duration_ms": "duration"}
    for row, other in zip(found, expected, strict=True):
        assert (row.name, row.artists, row.album) == (other.name, other.artists, other.album)
        for field in {*KINDS} - ({"scale"} - {*plain[0]}):  # without a column for it, keys may tell it
            key = plain_names.get(field, field)
            value, same = ({**each.of_track, **each.of_album}.get(key) for each in (row, other))
            assert value == same or field in missing, (field, table)
