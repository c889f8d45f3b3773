"""Count the writes of accounts, so that a read replica can be asked whether it has replayed those of a caller.

A write transaction adds one to a number of its account; the replica has the write as soon as it has the number. The
numbers are rows of the table `table_version`, 32 for all accounts: if two accounts share one, a write of one delays for
the other that the replica is read.
"""

from collections.abc import Callable

from musicsvc.store.engine.sql import T, fetch, is_followed, is_sqlite, run, then

NUMBERS = 32
# Concurrent transactions advance different rows, as those of the tables.
MARK = """
    INSERT INTO table_version (slot, name, number) VALUES (mod(pg_backend_pid(), 64), ?, 1)
    ON CONFLICT (slot, name) DO UPDATE SET number = table_version.number + 1
"""
COUNT = "SELECT coalesce(sum(number), 0)::bigint FROM table_version WHERE name = ?"


def marked(unit: Callable[[], T], account: int) -> Callable[[], T]:
    """Return a unit of work that calls `unit` and counts a write of the account, after all that follows the unit."""

    def mark() -> bool:
        run(MARK, _name(account))
        return True

    def write() -> T:
        result = unit()
        if is_followed():
            then(mark)
        else:
            mark()
        return result

    return write


def mark_loser(account: int) -> None:
    """Count a write that takes something from the account, which thus reads no older figures of it."""
    if not is_sqlite():
        run(MARK, _name(account))


def count(account: int | None) -> int:
    """Return the number of the account's writes that the current database has, those of some others included."""
    return 0 if account is None else int(fetch(COUNT, _name(account))[0][0])


def _name(account: int) -> str:
    return f"account:{account % NUMBERS}"
