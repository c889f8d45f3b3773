"""Compare all rows of two databases, of either kind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from musicsvc.store.copying.databases import CopiedDatabase
from musicsvc.store.copying.tables import CopiedTable, Row, side_by_side, tables
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.sql import bound

OnProgress = Callable[[float, float], None]
MOST_NAMED = 20  # rows that differ
STEP = 10_000  # rows between two calls of on_progress
NEXT_IDS = "next ids"


@dataclass
class Content:
    """The number of rows of a table, and the SHA-256 of the rows in the order of keys, each as a line of JSON."""

    rows: int = 0
    digest: str = ""


@dataclass
class Difference:
    """A row that differs: its primary key, and the columns that do. `only_in`: `from` or `to`, if one lacks the row."""

    table: str
    key: dict[str, object]
    columns: list[str] = field(default_factory=list)
    only_in: str | None = None


@dataclass
class ComparedTable:
    name: str
    source: Content
    target: Content
    different: int  # rows


@dataclass
class Comparison:
    """The result. `problems`: counts and indexes derived from the rows that are wrong, with `from` or `to` before."""

    tables: list[ComparedTable] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return not self.problems and not any(table.different for table in self.tables)

    @property
    def different(self) -> int:
        return sum(table.different for table in self.tables)


def compare(
    source: CopiedDatabase, target: CopiedDatabase, on_progress: OnProgress = lambda _done, _total: None
) -> Comparison:
    """Compare one snapshot of each database, the rows of the activity log and the next ids included."""
    source.begin()
    target.begin()
    compared = tables()
    total = sum(source.count(table) for table in compared)
    found = Comparison()
    done = 0
    for table in compared:
        pairs = side_by_side(source.rows(table), target.rows(table), table.width)
        for number in _compare_rows(found, table.name, table.columns, table.width, pairs):
            on_progress(done + number, max(done + number, total))
        done += found.tables[-1].source.rows
    ids = side_by_side(_next_ids(source, compared), _next_ids(target, compared), 1)
    for _ in _compare_rows(found, NEXT_IDS, ["table", "last_id"], 1, ids):
        pass
    found.problems = [*_problems("from", source), *_problems("to", target)]
    return found


def _compare_rows(
    found: Comparison, name: str, columns: list[str], width: int, pairs: Iterator[tuple[Row | None, Row | None]]
) -> Iterator[int]:
    """Add a table to `found`, and yield the number of rows compared so far now and then."""
    compared = ComparedTable(name, Content(), Content(), 0)
    digests = sha256(), sha256()
    for number, (one, other) in enumerate(pairs, 1):
        for content, digest, row in zip((compared.source, compared.target), digests, (one, other), strict=True):
            if row is not None:
                content.rows += 1
                digest.update(orjson.dumps(row, default=bytes.hex, option=orjson.OPT_APPEND_NEWLINE))
        if one != other:
            compared.different += 1
            if len(found.differences) < MOST_NAMED:
                found.differences.append(_difference(name, columns, width, one, other))
        if number % STEP == 0:
            yield number
    compared.source.digest, compared.target.digest = (digest.hexdigest() for digest in digests)
    found.tables.append(compared)


def _difference(name: str, columns: list[str], width: int, one: Row | None, other: Row | None) -> Difference:
    values = (value.hex() if isinstance(value, bytes) else value for value in one or other or ())
    key = dict(zip(columns[:width], values, strict=False))
    if one is None or other is None:
        return Difference(name, key, only_in="to" if one is None else "from")
    pairs = zip(columns, one, other, strict=True)
    return Difference(name, key, [column for column, value, another in pairs if value != another])


def _next_ids(side: CopiedDatabase, compared: list[CopiedTable]) -> Iterator[Row]:
    for table in sorted(compared, key=lambda table: table.name):
        database = side.database(table)
        if table.has_ids:
            last = 0
            if database is not None:
                with side.translated(), bound(database):
                    last = side.next_id(table)
            yield table.name, last


def _problems(name: str, side: CopiedDatabase) -> Iterator[str]:
    with side.translated(), bound(side.main):
        yield from (f"{name}: {line}" for line in (*list_blocks.differences(), *name_index.differences()))
