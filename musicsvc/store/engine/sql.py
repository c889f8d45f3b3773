"""SQL in the database of the current thread: running statements, and what differs between SQLite and PostgreSQL.

Statements have `?` for each parameter. `compiled` builds a Peewee query once and runs its SQL many times, because
building it takes ten times as long as running it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import update_wrapper
from itertools import islice
from typing import Any, Generic, ParamSpec, Self, TypeVar
from uuid import uuid4

import orjson
from peewee import SQL, BaseQuery, Context, Database, DatabaseProxy, IntegrityError, Node, SelectBase

from musicsvc.errors import Failure

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
ROWS_PER_FETCH = 1000
DENSE = 2  # ascending ids are read as one range if they are at least 1/DENSE of its numbers
BATCH = 500  # values in one statement; both databases take more than ten thousand
_current: ContextVar[Database | None] = ContextVar("musicsvc_database", default=None)
_later: ContextVar[list[Callable[[], bool]] | None] = ContextVar("musicsvc_later", default=None)


class CurrentDatabase(DatabaseProxy):
    """A Peewee proxy for the database of the current thread. All models are bound to this proxy."""

    @property
    def obj(self) -> Database | None:
        """The database of the current thread, or None if none was set."""
        return _current.get()

    @obj.setter
    def obj(self, value: Database | None) -> None:
        """Ignore any assignment, because Peewee assigns None on initialization. The database is set with `bind`."""


def bind(database: Database) -> None:
    """Make the models use `database` on the current thread."""
    _current.set(database)


@contextmanager
def assigned(variable: ContextVar[V | None], value: V) -> Iterator[V]:
    """Give a context variable a value inside the `with` block, and yield the value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def bound(database: Database) -> AbstractContextManager[Database]:
    """Make the models use `database` inside the `with` block."""
    return assigned(_current, database)


def perform(database: Database, unit: Callable[[], T]) -> T:
    """Call `unit` in the open transaction and return the result. Raises TypeError if the result is a Peewee query."""
    database.push_transaction(unit)
    try:
        result = unit()
    finally:
        database.pop_transaction()
    if isinstance(result, BaseQuery):
        raise TypeError("a unit of work must return rows, not a query that would run after its end")
    return result


def current() -> Database:
    """Return the database of the current thread. Raises RuntimeError if none was set."""
    database = _current.get()
    if database is None:
        raise RuntimeError("store functions must run in a unit of Store.read or Store.write")
    return database


def _database() -> Any:
    return current()


def erase_for_good() -> None:
    """After the commit of this transaction, let the store overwrite what is left of the rows that it deletes."""
    if is_sqlite():
        _database().erasing = True


def savepoint() -> AbstractContextManager[Any]:
    """Return a context manager that opens a savepoint. An error in the block undoes only the block's changes."""
    point: AbstractContextManager[Any] = current().savepoint()
    return point


@contextmanager
def refusing_duplicates(refusal: Failure) -> Iterator[None]:
    """Raise `refusal` if the `with` block violates a constraint, and undo only the changes of the block."""
    try:
        with savepoint():
            yield
    except IntegrityError:
        raise refusal from None


def is_sqlite() -> bool:
    return not current().for_update


def native(statement: str) -> str:
    """Return the statement with each `?` replaced by the parameter placeholder of the database: `?` or `%s`."""
    return statement.replace("?", current().param)


def run(statement: str, *values: Any) -> None:
    current().execute_sql(native(statement), values)


def run_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        current().cursor().executemany(native(statement), rows)


def fetch(statement: str, *values: Any) -> list[Any]:
    rows: list[Any] = current().execute_sql(native(statement), values).fetchall()
    return rows


def stream_rows(statement: str, *values: Any) -> Iterator[Any]:
    """Yield the rows of a query one by one, without loading all of them into memory."""
    if is_sqlite():
        yield from current().execute_sql(native(statement), values)
        return
    # An unnamed cursor of psycopg would load all rows at once.
    connection: Any = current().connection()
    with connection.cursor(name=f"stream_{uuid4().hex}") as cursor:
        cursor.itersize = ROWS_PER_FETCH
        cursor.execute(native(statement), values)
        yield from cursor


@contextmanager
def without_memory_map() -> Iterator[None]:
    """Disable SQLite's memory-mapped I/O inside the `with` block, so that large reads do not increase memory use."""
    with _pragma("mmap_size", 0):
        yield


@contextmanager
def without_cache() -> Iterator[None]:
    """Disable SQLite's memory map and limit its page cache to 1 MB inside the `with` block, then empty the cache."""
    with without_memory_map(), _pragma("cache_size", -1000):
        yield
    release_page_cache()


def release_page_cache() -> None:
    """Free the pages that the connection of this thread keeps in memory. Does nothing on PostgreSQL."""
    if is_sqlite():
        _database().pragma("shrink_memory")


@contextmanager
def _pragma(name: str, value: int) -> Iterator[None]:
    """Set a SQLite pragma inside the `with` block, and restore it afterwards. Does nothing on PostgreSQL."""
    if not is_sqlite():
        yield
        return
    before = _database().pragma(name)
    _database().pragma(name, value)
    try:
        yield
    finally:
        _database().pragma(name, before)


def lock_rows(query: Any, *, deleting: bool = False) -> Any:
    """Return `query` with FOR UPDATE, which locks the selected rows. On SQLite, return `query` unchanged.

    Unless the rows may be deleted, rows that refer to a locked row can still be inserted, which avoids deadlocks.
    """
    return query if is_sqlite() else query.for_update("FOR UPDATE" if deleting else "FOR NO KEY UPDATE")


def lock_row(table: Any, row_id: int) -> None:
    """Lock the row with this id as `lock_rows` does, until the transaction ends."""
    lock_rows(table.select(table.id).where(table.id == row_id)).first()


def lock(number: int, *, shared: bool = False) -> None:
    """Acquire PostgreSQL's advisory lock `number` until the transaction ends. Does nothing on SQLite.

    Several transactions may hold a `shared` lock at a time. A lock that is not shared excludes all others.
    """
    if not is_sqlite():
        current().execute_sql(f"SELECT pg_advisory_xact_lock{'_shared' if shared else ''}(%s)", (number,))


def try_lock(number: int) -> bool:
    """Acquire the lock as `lock` does, if no other transaction has it. Return whether this transaction has it."""
    return is_sqlite() or bool(fetch("SELECT pg_try_advisory_xact_lock(?)", number)[0][0])


def following() -> AbstractContextManager[list[Callable[[], bool]]]:
    """Yield a list, and add to it the units that transactions in the `with` block pass to `then`."""
    return assigned(_later, [])


def then(unit: Callable[[], bool]) -> None:
    """After this transaction, call `unit` in others until it returns True; `Store.write` is not done before.

    For PostgreSQL only. `unit` may also be called if this transaction fails and is repeated. Raises `RuntimeError`
    outside of a write.
    """
    units = _later.get()
    if units is None:
        raise RuntimeError("`then` is for units of PostgresStore.write")
    units.append(unit)


def is_followed() -> bool:
    """Return whether this transaction has passed units to `then`."""
    return bool(_later.get())


def by_code_point(field: Any) -> Any:
    """Return an ORDER BY expression that sorts a text column by Unicode code point on both databases."""
    return field if is_sqlite() else field.collate('"C"')


def concat_blob(left: str, right: str) -> str:
    """Return an SQL expression that concatenates the blob expressions `left` and `right`."""
    return f"CAST({left} || {right} AS BLOB)" if is_sqlite() else f"{left} || {right}"


def gather(column: str) -> str:
    """Return an SQL aggregate that collects the values of an integer column. Decode its result with `gathered`."""
    return f"json_group_array({column})" if is_sqlite() else f"array_agg({column})"


def gathered(values: Any) -> list[int]:
    """Return the list of integers in the result of the SQL aggregate that `gather` returns."""
    found: list[int] = orjson.loads(values) if isinstance(values, str) else values
    return found


def in_list(values: Collection[int] | Collection[str]) -> tuple[str, Any]:
    """Return SQL to append to a column name, such as `= ANY(?)` for "is one of the values", and its parameter."""
    if is_sqlite():
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(values)).decode()
    return "= ANY(?)", list(values)


def table_of(values: Sequence[int], name: str = "given") -> tuple[str, Any]:
    """Return SQL for a FROM clause, a table `name` with the integers in its column `value`, and its parameter.

    `values` must not be empty. On SQLite, joining it takes two thirds of the time of the condition of `in_list`.
    """
    if is_sqlite():
        return f"carray(?) AS {name}", _database().integers(values)
    return f"unnest(?::bigint[]) AS {name}(value)", list(values)


def table_of_rows(rows: Sequence[Sequence[Any]], name: str, **types: str) -> SQL:
    """Return a table `name` with these rows for the FROM clause of a Peewee query. `types`: of its columns."""
    if is_sqlite():
        columns = ", ".join(f"value->>{place} AS {column}" for place, column in enumerate(types))
        text = f"(SELECT {columns} FROM json_each(?)) AS {name}"  # noqa: S608 - names of the callers
        return SQL(text, [orjson.dumps(rows).decode()])
    arrays = ", ".join(f"%s::{kind}[]" for kind in types.values())
    return SQL(f"unnest({arrays}) AS {name} ({', '.join(types)})", [list(column) for column in zip(*rows, strict=True)])


def fence() -> str:
    """Return what ends a subquery that PostgreSQL is to run by itself, before the conditions around it."""
    return "" if is_sqlite() else " OFFSET 0"


def is_dense(ids: Sequence[int], part: int | None = None) -> bool:
    """Return True if ascending `ids` are at least 1/`part` of the numbers from the first to the last.

    By default, these have so few gaps that they are read as one range.
    """
    return ids[-1] - ids[0] < (DENSE if part is None else part) * len(ids)


def batches(values: Iterable[T], size: int = BATCH) -> Iterator[list[T]]:
    """Yield the values in lists of `size`; the last may be shorter. By default, one SQL statement takes a list."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


class Compiled(Generic[P]):
    """A Peewee query that is built once; see `compiled`."""

    def __init__(self, build: Callable[P, Any]) -> None:
        self._build: Callable[..., Any] = build
        self._statements: dict[Hashable, Statement] = {}
        update_wrapper(self, build)

    def __call__(self, *arguments: P.args, **constants: P.kwargs) -> list[Any]:
        statement = self._statement(arguments, constants)
        cursor = current().execute_sql(statement.sql, statement.fill(arguments))
        return cursor.fetchall() if statement.returns_rows else []

    def many(self, rows: Sequence[Sequence[Any]], **constants: Any) -> None:
        """Run the query once for each row of arguments."""
        if rows:
            statement = self._statement(rows[0], constants)
            current().cursor().executemany(statement.sql, [statement.fill(row) for row in rows])

    def _statement(self, arguments: Sequence[Any], constants: Mapping[str, Any]) -> "Statement":
        database = current()
        key = type(database), *constants.values()
        statement = self._statements.get(key)
        if statement is None:
            query = self._build(*map(Placeholder, range(len(arguments)), arguments), **constants)
            statement = self._statements[key] = Statement.compile(query, database)
        return statement


def compiled(build: Callable[P, Any]) -> Compiled[P]:
    """Decorate a function that builds a Peewee query: calls return the query's rows as tuples, without conversion.

    The first call builds the query, with a placeholder for each positional argument, and keeps its SQL for databases
    of that kind. An argument may be any value except None, or a list for `Field.in_`. Keyword arguments become
    constants of the query: each combination of keyword arguments has its own SQL.
    """
    return Compiled(build)


@compiled
def _existing(ids: Collection[int], *, table: Any) -> Any:
    return table.select(table.id).where(table.id.in_(ids))


def missing(ids: Collection[int], table: Any) -> set[int]:
    """Return those of the ids that no row of the table has."""
    return set(ids) - {found for (found,) in _existing(ids, table=table)} if ids else set()


@dataclass(frozen=True, slots=True)
class Argument:
    """Marks a statement's parameter whose value is the positional argument at `position` of each call."""

    position: int
    is_list: bool


class Placeholder(Node):
    """A node of a Peewee query that becomes the placeholder of an argument."""

    def __init__(self, position: int, example: object) -> None:
        self._argument = Argument(position, isinstance(example, Collection) and not isinstance(example, str | bytes))

    def __sql__(self, context: Context) -> Any:
        """Append the SQL of the placeholder; called by Peewee."""
        if not self._argument.is_list:
            return context.value(self._argument, converter=False)
        before, after = ("ANY(", ")") if context.state.for_update else ("(SELECT value FROM json_each(", "))")
        return context.literal(before).value(self._argument, converter=False).literal(after)


@dataclass(frozen=True, slots=True)
class Statement:
    """The SQL of a query, and its parameters: constants, and `Argument` objects that each call replaces by values."""

    sql: str
    parameters: Sequence[Any]
    lists_as_json: bool
    returns_rows: bool

    @classmethod
    def compile(cls, query: Any, database: Database) -> Self:
        sql, parameters = database.get_sql_context().sql(query).query()
        returns_rows = isinstance(query, SelectBase) or bool(query._returning)  # noqa: SLF001 - Peewee has no public name
        return cls(sql.replace(" IN ANY(", " = ANY("), parameters, not database.for_update, returns_rows)

    def fill(self, arguments: Sequence[Any]) -> list[Any]:
        return [self._value(each, arguments) if type(each) is Argument else each for each in self.parameters]

    def _value(self, argument: Argument, arguments: Sequence[Any]) -> Any:
        value = arguments[argument.position]
        if not argument.is_list:
            return value
        return orjson.dumps(list(value)).decode() if self.lists_as_json else list(value)
