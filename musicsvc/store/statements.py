"""SQL as it stands, for what is asked often: to build a query anew takes longer than to run it."""

from __future__ import annotations

from typing import Any

from musicsvc.store.database import current


def fetch(statement: str, *values: Any) -> list[Any]:
    """The rows of a statement of ours, in which `?` stands for each value and for nothing else."""
    rows: list[Any] = current().execute_sql(statement.replace("?", current().param), values).fetchall()
    return rows
