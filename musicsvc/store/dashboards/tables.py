"""The table of all artists, albums or tracks of an account with their figures, in any order, found by name or code."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyroaring import BitMap64

from musicsvc.store.dashboards import catalog_search
from musicsvc.store.engine.name_keys import folded_key
from musicsvc.store.engine.sql import batches
from musicsvc.store.insights import engagement, export_rows, figures, tops
from musicsvc.store.insights.export_rows import ExportRow
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.insights.tops import Bounds
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import Reader, all_time_plays
from musicsvc.store.plays.subjects import TRACK

PER_PAGE = 20
ROWS_AT_ONCE = 1024
MANY_ROWS = 2000  # of which only those with many plays are compared
NAME, ARTISTS = "name", "artists"
SORTS = (NAME, ARTISTS, *export_rows.FIGURES)
Values = Mapping[int, Any]


class Selection(NamedTuple):
    """The rows of a table: those of a kind that match the text, in the order of a column."""

    kind: int
    text: str = ""
    sort: str = "plays_period"
    descending: bool = True


class TablePage(NamedTuple):
    """The rows of a page, and the number of all rows."""

    rows: Sequence[ExportRow]
    total: int


def page(user_id: int, selection: Selection, window: Window, number: int) -> TablePage:
    """Return a page of the table. Call in a transaction."""
    kind, ids, last = selection.kind, _ids(user_id, selection), number * PER_PAGE
    may_skip = selection == Selection(kind) and number == 1 and len(ids) > MANY_ROWS
    order = (may_skip and _most_played(kind, ids, window, last)) or _order(ids, selection, window)
    return TablePage(read(kind, order[last - PER_PAGE : last], window), len(ids))


def cells(user_id: int, selection: Selection, window: Window) -> Iterator[tuple[Any, ...]]:
    """Yield all rows of the table in their order, with the columns of exports. Use it in a transaction."""
    kind, ordered = selection.kind, _order(_ids(user_id, selection), selection, window)
    rows = (row for some in batches(ordered, ROWS_AT_ONCE) for row in read(kind, some, window))
    found = (export_rows.cells_of(kind, row) for row in rows)
    yield from export_rows.for_imports(found) if kind == TRACK else found


def read(kind: int, ids: Sequence[int], window: Window) -> list[ExportRow]:
    """Return the rows of tracks, albums or artists, in the order of their ids."""
    reader, found = Reader(window, window.before), dict[int, ExportRow]()
    for some in batches(sorted(ids), export_rows.SUBJECTS_PER_BATCH):
        found |= {row.id: row for row in export_rows.read_batch(kind, some, window, reader)}
    return [found[each] for each in ids]


def _ids(user_id: int, selection: Selection) -> BitMap64:
    if selection.text:
        return BitMap64(catalog_search.matching(selection.kind, selection.text, user_id))
    return Scope(manager=user_id).ids(selection.kind)


def _most_played(kind: int, own: BitMap64, window: Window, count: int) -> list[int] | None:
    """Return the `count` most played ones of many, or None if all must be compared."""
    within, _ = tops.read(window, kind, [*own], 2 * count, 1)
    plays = Reader(window, all_time=False).plays  # also of ids of others, which are between them
    return tops.best(
        within, Bounds(), count, lambda some: {each: of for each, of in plays(kind, some).items() if each in own}
    )


def _order(ids: BitMap64, selection: Selection, window: Window) -> list[int]:
    """Return the ids of all rows. Those without a value come last; of equal ones, the newest first."""
    values = _values(selection.kind, [*ids], window, selection.sort)
    known = [each for each in ids if values.get(each) is not None]
    known.sort(reverse=True)
    known.sort(key=values.__getitem__, reverse=selection.descending)
    return [*known, *sorted((each for each in ids if values.get(each) is None), reverse=True)]


def _values(kind: int, ids: Sequence[int], window: Window, column: str) -> Values:
    if not ids:
        return {}
    if column == NAME:
        return {each: folded_key(name) for each, name in export_rows.names(kind, ids).items()}
    if column == ARTISTS:
        return {each: [folded_key(name) for name in some] for each, some in export_rows.authors(kind, ids).items()}
    found = COLUMNS.get(column, _listeners)(kind, ids, window, column)
    return {each: found.get(each, 0) for each in ids}


def _plays(kind: int, ids: Collection[int], window: Window, _: str) -> Values:
    return Reader(window, all_time=False).plays(kind, ids)


def _growth(kind: int, ids: Collection[int], window: Window, _: str) -> Values:
    now, before = (Reader(each, all_time=False).plays(kind, ids) for each in (window, window.before))
    return {each: figures.change(now.get(each, 0), before.get(each, 0)) for each in ids}


def _all_time(kind: int, ids: Collection[int], _: Window, __: str) -> Values:
    return all_time_plays(kind, ids)


def _given(kind: int, ids: Collection[int], window: Window, column: str) -> Values:
    given: Values = getattr(engagement.by_subject(kind, ids, window), column)
    return given


def _listeners(kind: int, ids: Sequence[int], window: Window, column: str) -> Values:
    """Return the values of a column that needs the listeners of all rows, from the days that it is of."""
    windows = {"listeners_period": [window], "listeners_change": [window, window.before]}.get(column, [])
    reader, found = Reader(*windows, all_time=not windows), dict[int, Any]()
    for some in batches(sorted(ids), export_rows.SUBJECTS_PER_BATCH):
        for each, stats in reader.stream(kind, some).items():
            numbers = [len(part.listeners) for part in stats]
            found[each] = numbers[0] if len(numbers) == 1 else figures.change(*numbers)
    return found


COLUMNS: Mapping[str, Callable[[int, Sequence[int], Window, str], Values]] = {
    "plays_period": _plays,
    "plays_change": _growth,
    "plays_total": _all_time,
    "likes": _given,
    "reposts": _given,
}
