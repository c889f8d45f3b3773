"""SQL as it stands, for what is asked often: to build a query anew takes longer than to run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from musicsvc.store.engine.binding import current

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(statement: str, *values: Any) -> None:
    """Run a statement of ours that changes rows, with the same signs as `fetch`."""
    current().execute_sql(statement.replace("?", current().param), values)


def run_many(statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run the statement for each of the rows of values."""
    if rows:
        current().cursor().executemany(statement.replace("?", current().param), rows)


def fetch(statement: str, *values: Any) -> list[Any]:
    """The rows of a statement of ours, in which `?` stands for each value and for nothing else."""
    rows: list[Any] = current().execute_sql(statement.replace("?", current().param), values).fetchall()
    return rows
