"""Guess from the headings and the first rows of a table which field each column fills, and how its cells are written.

The guess depends on nothing else, so that a page can show it before an import.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import time, timedelta
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.importing import headings, values
from musicsvc.store.importing.columns import EXACT, MAPPED, Columns, Field, Guess, Parse, UnclearError
from musicsvc.store.importing.files.records import Pause, Record, Step
from musicsvc.wording import cut

SAMPLE = 500  # rows
SAMPLE_CELLS = 50_000
SAMPLE_PIECES = 4  # between which the reader pauses: about 2 MiB
SECONDS_BELOW = 10_000  # a median below is seconds: hardly a track takes ten seconds, or three hours
TITLED = "track"  # a column of this name beside one with titles holds numbers
EITHER_WAY: list[Parse] = [partial(values.dated, order=order) for order in ("DMY", "MDY")]
DATE_FORMATS = {"YYYY-MM-DD": None, "DD.MM.YYYY": "DMY", "DD/MM/YYYY": "DMY", "MM/DD/YYYY": "MDY"}


class Rows(NamedTuple):
    """The first rows of a table: their line numbers, and their cells by column."""

    lines: Sequence[int]
    cells: Sequence[Mapping[str, Any]]

    def of(self, column: str) -> list[tuple[int, Any]]:
        """Return line and value of the cells of a column that are not empty."""
        found = ((line, row.get(column)) for line, row in zip(self.lines, self.cells, strict=True))
        return [(line, value) for line, value in found if not values.is_blank(value)]


def guess(
    names: Sequence[str],
    rows: Rows,
    fields: Mapping[str, Field],
    synonyms: Mapping[str, str],
    mapped: Mapping[str, str],
    date_format: str | None = None,
) -> list[Guess]:
    """Return a guess for each column. `mapped`: fields by column, as the user set them; an empty text ignores a column.

    Raises Failure for dates that may be in either of two orders, unless `date_format` says which.
    """
    found = {column: (field, MAPPED) for column, field in mapped.items()}
    keys = {name: headings.keys(name) for name in names}
    for field in fields:
        if field in mapped.values():
            continue
        for column in _candidates(keys, field, synonyms.get(field, ""), found):
            exact = column == field
            if column not in found and (exact or _fits(rows, column, field, fields[field])):
                found[column] = (field, EXACT if exact else f"a name for {field}")
                break
    guesses = []
    for column in names:
        field, why = found.get(column, ("", "no field has such a name"))
        written, read = _written(column, field, rows, date_format, ours=column == field or column in mapped)
        guesses.append(Guess(column, field or None, why, written, read))
    return guesses


def _candidates(keys: Mapping[str, Sequence[str]], field: str, synonyms: str, taken: Collection[str]) -> list[str]:
    """Return the columns that may fill a field, the best first. `keys`: see `headings.keys`, by column."""
    is_titled = not {"title", "titel", "name"}.isdisjoint(key for each in keys.values() for key in each)

    def is_number(column: str) -> bool:
        """Return True if a column `Track` stands beside `Title`, as music players export them: the track's number."""
        return is_titled and "".join(headings.words(column)) == TITLED

    if field in keys and field not in taken and not is_number(field):
        return [field]
    ranks = {key: rank for rank, key in enumerate(headings.known(field, synonyms))}
    if field == "track_number" and is_number(TITLED):
        ranks["track"] = len(ranks)
    found = []
    for place, (column, forms) in enumerate(keys.items()):
        own = [ranks[key] for key in forms if key in ranks]
        if own and column not in taken and not (field == TITLED and is_number(column)):
            found.append((own[0], place, column))
    return [column for _, _, column in sorted(found)]


def _fits(rows: Rows, column: str, name: str, field: Field) -> bool:
    """Return True unless most cells of the column are invalid for the field `name`."""
    cells = rows.of(column)
    written: dict[str, list[Parse]] = {"duration_ms": [_duration_of(column, cells)[1]], "release_date": EITHER_WAY}
    parsers = written.get(name, [field.parse])
    valid = sum(any(_is_valid(parse, [value] if field.several else value) for parse in parsers) for _, value in cells)
    return 2 * valid >= len(cells)


def _is_valid(parse: Parse, value: Any) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _written(
    column: str, field: str, rows: Rows, date_format: str | None, *, ours: bool
) -> tuple[str | None, Parse | None]:
    """Return how the cells of the column are written, and their parser, if that is no matter of course."""
    cells = rows.of(column)
    if field == "duration_ms":
        written, parse = _duration_of(column, cells, ours=ours)
        return (None, None) if written == "milliseconds" and ours else (written, parse)
    if field == "release_date":
        order = DATE_FORMATS[date_format] if date_format else _order(column, cells)
        form = {"DMY": "day, month, year", "MDY": "month, day, year"}
        return (None, None) if order is None else (form[order], partial(values.dated, order=order))
    return None, None


def _duration_of(column: str, cells: Sequence[tuple[int, Any]], *, ours: bool = False) -> tuple[str, Parse]:
    """Return how the durations of a column are written, and their parser: one for the whole column.

    `ours`: the column is named after the field, or was mapped to it, so that numbers are milliseconds.
    """
    spans = [values.span(value) for _, value in cells if isinstance(value, time | timedelta)]
    texts = [value for _, value in cells if isinstance(value, str) and ":" in value]
    if 2 * (len(spans) + len(texts)) > len(cells):
        # Typed as 3:45, a spreadsheet takes it for a quarter to four.
        if spans and 2 * sum(span % values.MINUTE == 0 for span in spans) > len(spans) and max(spans) >= values.HOUR:
            return "m:ss, which the workbook holds as hours and minutes", partial(values.clock, shifted=True)
        longer = spans or any(value.count(":") > 1 for value in texts)
        return "h:mm:ss" if longer else "m:ss", values.clock
    named = headings.unit(column)
    if named is None and not ours:
        numbers = [abs(number) for _, value in cells if (number := values.number_or_none(value)) is not None]
        named = "seconds" if numbers and median(numbers) < SECONDS_BELOW else "milliseconds"
    return ("seconds", values.seconds) if named == "seconds" else ("milliseconds", values.milliseconds)


def _order(column: str, cells: Sequence[tuple[int, Any]]) -> str | None:
    """Return the order of dates with slashes or hyphens, or None if there are none. Raises Failure if it is unclear."""
    found = [(line, value, parts) for line, value in cells if (parts := values.slashed(value)) is not None]
    if not found:
        return None
    if any(first > values.MONTHS for _, _, (first, _) in found):
        return "DMY"
    if any(second > values.MONTHS for _, _, (_, second) in found):
        return "MDY"
    line, value, _ = next((each for each in found if each[2][0] != each[2][1]), found[0])
    raise UnclearError(
        f"Line {line} has {cut(value.strip())} in the column {cut(column)!r}: day and month can be either way round.",
        "Say which with --date-format DD/MM/YYYY or --date-format MM/DD/YYYY.",
    )


def fit(
    steps: Iterator[Step],
    columns: Columns,
    names: Sequence[str] | None,
    synonyms: Mapping[str, str],
    form: str | None,
) -> Iterator[Step]:
    """Guess from the first rows what the columns hold, and yield all rows. `names`: the columns, if they are known.

    `form`: the format of dates, if the user has set it.
    """
    first: list[Record] = []
    damage = None
    try:
        first.extend(_sample(steps))
    except Failure as failure:  # raised again after the rows before it
        damage = failure
    sound = [record for record in first if record.fault is None and record.note is None]
    rows = Rows([record.line for record in sound], [record.values for record in sound])
    names = list(dict.fromkeys(name for record in sound for name in record.values)) if names is None else names
    columns.use(guess(names, rows, columns.fields, synonyms, columns.mapped, form))
    return _all(first, damage, steps)


def _sample(steps: Iterator[Step]) -> Iterator[Record]:
    """Yield the first rows: up to SAMPLE of them, SAMPLE_CELLS or SAMPLE_PIECES, whichever comes first."""
    rows = cells = pieces = 0
    for step in steps:
        if isinstance(step, Record):
            yield step
            rows += 1
            cells += len(step.values)
        elif step is Pause.FULL:
            pieces += 1
        if rows >= SAMPLE or cells >= SAMPLE_CELLS or pieces >= SAMPLE_PIECES:
            return


def _all(first: list[Record], damage: Failure | None, rest: Iterator[Step]) -> Iterator[Step]:
    first.reverse()
    while first:  # each is free once it is done
        yield first.pop()
    if damage is not None:
        raise damage
    yield from rest
