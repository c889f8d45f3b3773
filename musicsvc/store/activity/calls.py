"""The log of calls: what is kept of each, how it is found again, and how it ends. Its units run on the log's store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from musicsvc.networks import client_network
from musicsvc.store.engine import dialect
from musicsvc.store.engine.dialect import is_sqlite
from musicsvc.store.engine.sql import run
from musicsvc.store.models.activity import Activity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from musicsvc.store.engine.store import Store

SLICE = 5_000
PRUNED = 2_000  # so that new calls need not wait long for the writer


class Entry(NamedTuple):
    """A call that was answered, as the log keeps it.

    `at`: instant in microseconds at which it came; `route`: the template of its path, None where there is none;
    `resource`: the object that the path names, such as `playlists/7`; `size`: bytes of the answer's body; `judged`:
    whether limits and abuse handling held for it; `private`: whether the resource is of a kind that can be private;
    `calls`: how many calls it stands for: a count of the calls without a token that an address made within a minute
    with this status has no request id, and `milliseconds` and `size` are their sums.
    """

    at: int
    request_id: str
    account_id: int | None
    token_id: int | None
    address: str
    method: str
    route: str | None
    resource: str | None
    status: int
    retry_after: int | None
    milliseconds: float
    size: int
    judged: bool
    private: bool
    calls: int = 1

    @property
    def is_count(self) -> bool:
        """Whether it is a count, and not one call."""
        return not self.request_id


COLUMNS = tuple(getattr(Activity, name) for name in Entry._fields)
TYPES = ["int8", "text", "int8", "int8", *["text"] * 4, "int4", "int4", "float8", "int8", "bool", "bool", "int4"]
INSERT = f"INSERT INTO activity ({', '.join(Entry._fields)}) {{rows}}"
UNPACKED = f"SELECT {', '.join(f'value->>{place}' for place in range(len(Entry._fields)))} FROM json_each(?)"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which calls are wanted; what is None narrows nothing.

    `statuses`: the first and the last; `route`: a part of the template; `since` is within, `until` beyond.
    """

    account_id: int | None = None
    token_id: int | None = None
    address: str | None = None
    request_id: str | None = None
    method: str | None = None
    route: str | None = None
    statuses: tuple[int, int] | None = None
    since: int | None = None
    until: int | None = None


ALL = Filter()


def add(entries: Sequence[Entry]) -> None:
    """Keep the entries, in one statement: on SQLite it runs while the event loop does, row by row would not."""
    if is_sqlite():
        rows = orjson.dumps([list(entry) for entry in entries]).decode()
        run(INSERT.format(rows=UNPACKED), rows)
    else:
        dialect.insert_many(INSERT, TYPES, entries)


def find(wanted: Filter = ALL, *, limit: int) -> list[Entry]:
    """The newest entries that are wanted, so many at most, oldest of them first."""
    rows = _wanted(wanted).order_by(Activity.at.desc(), Activity.id.desc()).limit(limit)
    return [Entry._make(row) for row in rows.tuples()][::-1]


def of_tokens(token_ids: Collection[int], since: int) -> list[Entry]:
    """The entries of these tokens from this instant on, oldest first."""
    chosen = Activity.token_id.in_(list(token_ids)), Activity.at >= since
    rows: Any = Activity.select(*COLUMNS).where(*chosen).order_by(Activity.at, Activity.id)
    return [Entry._make(row) for row in rows.tuples()]


def replay(log: Store, wanted: Filter = ALL) -> Iterator[Entry]:
    """Every entry that is wanted, oldest first, read from the log a slice at a time."""
    at, last = wanted.since or 0, 0
    while rows := log.read(partial(_slice, wanted, at, last)).result():
        yield from (entry for _, entry in rows)
        last, (at, *_) = rows[-1]


def _slice(wanted: Filter, at: int, last: int) -> list[tuple[int, Entry]]:
    """The first entries after the one of this instant and id, with their ids."""
    beyond = (Activity.at > at) | ((Activity.at == at) & (Activity.id > last))
    rows = _wanted(wanted, Activity.id).where(Activity.at >= at, beyond).order_by(Activity.at, Activity.id)
    return [(row[0], Entry._make(row[1:])) for row in rows.limit(SLICE).tuples()]


def last_id() -> int:
    """The id of the entry that was written last, 0 where there is none."""
    row = Activity.select(Activity.id).order_by(Activity.id.desc()).tuples().first()
    return int(row[0]) if row else 0


def written_after(entry_id: int, wanted: Filter = ALL) -> list[tuple[int, Entry]]:
    """The entries with higher ids that are wanted, with their ids, in the order in which they were written."""
    rows = _wanted(wanted, Activity.id).where(Activity.id > entry_id).order_by(Activity.id).limit(SLICE)
    return [(row[0], Entry._make(row[1:])) for row in rows.tuples()]


def prune(before: int, *, limit: int = PRUNED) -> int:
    """Delete entries from before this instant, oldest first and so many at most; how many went."""
    oldest = Activity.select(Activity.id).where(Activity.at < before).order_by(Activity.at).limit(limit)
    return int(Activity.delete().where(Activity.id.in_(oldest)).execute())


def _wanted(wanted: Filter, *more: Any) -> Any:
    query = Activity.select(*more, *COLUMNS)
    if wanted.address is not None:
        network = client_network(wanted.address)  # which counts of an IPv6 client are of
        same = Activity.address == wanted.address
        query = query.where(same if network == wanted.address else same | (Activity.address == network))
    for name in ("account_id", "token_id", "request_id", "method"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(getattr(Activity, name) == value)
    if wanted.route is not None:
        query = query.where(Activity.route.contains(wanted.route))
    if wanted.statuses is not None:
        query = query.where(Activity.status >= wanted.statuses[0], Activity.status <= wanted.statuses[1])
    if wanted.since is not None:
        query = query.where(Activity.at >= wanted.since)
    return query if wanted.until is None else query.where(Activity.at < wanted.until)
