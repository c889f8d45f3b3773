"""Find the tables that SQL statements read and change, so that a write invalidates only the cached results it affects.

The text of every statement is recorded, so functions need not declare the tables that they use:

- Cursors record the text of each statement that they run (`Noting`).
- `recorded(unit)` returns the result of a function and the tables that its statements mention. A cache stores both.
- Before COMMIT, a transaction increments the version number of each table that its statements change, in the table
  `table_version`. A statement that cannot be parsed counts as a change of all tables.
- Statements in `with counting()` change only counters, such as plays. They increment separate version numbers, whose
  names are `counters(table)`.

The server compares these version numbers with earlier ones (`server/freshness.py`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, no_type_check

from musicsvc.store.engine.sql import T, current

VERSIONS = "table_version"  # the table of the numbers
COUNTERS = "counters:"  # before the name of a table, and before a statement that changes only counters
TEXTS = 1024  # statements whose tables are remembered
WORD = re.compile(r"\w+")
LITERAL = re.compile(r"'(?:[^']|'')*'")
NO_CHANGE = re.compile(r"\bDO\s+UPDATE\b|\bFOR\s+(?:NO\s+KEY\s+)?UPDATE\b|\bREPLACE\s*\(", re.IGNORECASE)
CHANGE = re.compile(
    r"\b(INSERT(?:\s+OR\s+\w+)?\s+INTO|REPLACE\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM|COPY)"
    r'\s+(?:ONLY\s+)?"?(\w+)"?'
    r"|\b(?:INSERT|REPLACE|UPDATE|DELETE|COPY|MERGE|TRUNCATE|CREATE|ALTER|DROP|CALL)\b",
    re.IGNORECASE,
)
_noted: ContextVar[set[str] | None] = ContextVar("musicsvc_statements", default=None)


class Tables:
    """The tables of a database. Finds the tables that a statement reads or changes, by their names in its text."""

    def __init__(self, rows: Iterable[tuple[str, str | None]]) -> None:
        """`rows`: (table, None) or, if deleting rows of `parent` changes rows of the table, (table, parent)."""
        names = set()
        self._changed_by_deletes: dict[str, set[str]] = {}
        for name, parent in rows:
            names.add(name)
            if parent is not None:
                self._changed_by_deletes.setdefault(parent, set()).add(name)
        self.versioned = VERSIONS in names
        self.names = frozenset(names - {VERSIONS})
        self.mentioned = lru_cache(TEXTS)(self._mentioned)
        self.changed = lru_cache(TEXTS)(self._changed)

    def _mentioned(self, statement: str) -> frozenset[str]:
        """Return the tables that the statement may read."""
        return self.names.intersection(WORD.findall(statement))

    def _changed(self, statement: str) -> frozenset[str]:
        """Return the tables that the statement may change; all tables if that is unclear."""
        if statement.startswith(COUNTERS):
            return frozenset(map(counters, self.changed(statement.removeprefix(COUNTERS))))
        found: set[str] = set()
        for verb, name in CHANGE.findall(NO_CHANGE.sub(" ", LITERAL.sub(" ", statement))):
            if name == VERSIONS:
                continue
            if name not in self.names:
                return self.names
            found.add(name)
            if "DELETE" in verb.upper() or "REPLACE" in verb.upper():
                self._add_dependents(name, found)
        return frozenset(found)

    def all_changed(self, statements: Iterable[str]) -> frozenset[str]:
        """Return the tables that the statements may change, and `counters(table)` for changed counters."""
        return frozenset[str]().union(*map(self.changed, statements))

    def _add_dependents(self, name: str, found: set[str]) -> None:
        """Add the tables whose rows are deleted or changed along with rows of the table `name`."""
        for other in self._changed_by_deletes.get(name, set()) - found:
            found.add(other)
            self._add_dependents(other, found)


@contextmanager
def noting() -> Iterator[set[str]]:
    """Collect the texts of the statements that this thread runs in the `with` block, which may be nested."""
    outer, noted = _noted.get(), set[str]()
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)
        if outer is not None:
            outer |= noted


@contextmanager
def counting() -> Iterator[None]:
    """Mark statements of the `with` block as changes of counters, which responses may show up to 5 seconds late."""
    outer, noted = _noted.get(), set[str]()
    token = _noted.set(noted)
    try:
        yield
    finally:
        _noted.reset(token)
        if outer is not None:
            outer |= {COUNTERS + statement for statement in noted}


def counters(table: str) -> str:
    """Return the name of the version number that is incremented if only counters of the table change."""
    return COUNTERS + table


def note(statement: str) -> None:
    if (noted := _noted.get()) is not None:
        noted.add(statement)


def recorded(unit: Callable[[], T]) -> tuple[T, frozenset[str]]:
    """Call `unit` in the current transaction. Return its result, and the tables that it may have read."""
    with noting() as statements:
        result = unit()
    return result, frozenset[str]().union(*map(current_tables().mentioned, statements))


def current_tables() -> Tables:
    """Return the tables of the database of the current thread."""
    database: Any = current()  # a SqliteDatabase or a PostgresDatabase
    tables: Tables = database.tables
    return tables


class Noting:
    """Mixin for the cursor class of a driver: records the text of each statement. List it before the driver's class.

    The methods are not type-checked, because drivers have different signatures.
    """

    @no_type_check
    def execute(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        note(statement)
        return super().execute(statement, *arguments, **options)

    @no_type_check
    def executemany(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        note(statement)
        return super().executemany(statement, *arguments, **options)
