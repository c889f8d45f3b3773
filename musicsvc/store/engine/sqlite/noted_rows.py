"""The SQL function `noted(…)`: notes its arguments, and returns the last one.

With it, a statement tells which few of its many rows meet a condition. RETURNING would return all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

FUNCTION = "noted"
_rows: ContextVar[list[tuple[Any, ...]] | None] = ContextVar("musicsvc_noted_rows", default=None)


@contextmanager
def noting() -> Iterator[list[tuple[Any, ...]]]:
    """Yield a list, and add to it the arguments of each call of `noted(…)` in the `with` block."""
    rows: list[tuple[Any, ...]] = []
    token = _rows.set(rows)
    try:
        yield rows
    finally:
        _rows.reset(token)


def note(*row: Any) -> Any:
    """Note a row. Raises RuntimeError outside `noting`. SQLite calls this function, as `noted(…)`."""
    rows = _rows.get()
    if rows is None:
        raise RuntimeError(f"{FUNCTION}() is for statements in a block of noting()")
    rows.append(row)
    return row[-1]
