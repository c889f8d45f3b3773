"""Build a Peewee query once and run its SQL many times, because building it takes ten times as long as running it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

import orjson
from peewee import Context, Database, Node

from musicsvc.store.engine.binding import current

P = ParamSpec("P")


def compiled(build: Callable[P, Any]) -> Callable[P, list[Any]]:
    """Decorate a function that builds a Peewee query: calls return the query's rows as tuples, without conversion.

    The first call builds the query, with a placeholder for each positional argument, and keeps its SQL as long as the
    database object. An argument may be any value except None, or a list for `Field.in_`. Keyword arguments become
    constants of the query: each combination of keyword arguments has its own SQL.
    """
    build_query: Callable[..., Any] = build

    @wraps(build)
    def run(*arguments: P.args, **constants: P.kwargs) -> list[Any]:
        database = current()
        statements: dict[Hashable, Statement] = vars(database).setdefault("statements", {})
        key = build, *constants.values()
        statement = statements.get(key)
        if statement is None:
            query = build_query(*map(Placeholder, range(len(arguments)), arguments), **constants)
            statement = statements[key] = Statement.compile(query, database)
        rows: list[Any] = database.execute_sql(statement.sql, statement.fill(arguments)).fetchall()
        return rows

    return run


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

    @classmethod
    def compile(cls, query: Any, database: Database) -> Statement:
        sql, parameters = database.get_sql_context().sql(query).query()
        return cls(sql.replace(" IN ANY(", " = ANY("), parameters, lists_as_json=not database.for_update)

    def fill(self, arguments: Sequence[Any]) -> list[Any]:
        return [self._value(each, arguments) if type(each) is Argument else each for each in self.parameters]

    def _value(self, argument: Argument, arguments: Sequence[Any]) -> Any:
        value = arguments[argument.position]
        if not argument.is_list:
            return value
        return orjson.dumps(list(value)).decode() if self.lists_as_json else list(value)
