"""Find denied calls that are not abuse, because the account could read the resource before it was hidden or deleted."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import orjson

from musicsvc.clock import DAY
from musicsvc.store.abuse.probing_rule import FIRST_FAILURE, denies
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.sql import fetch, is_sqlite

SQLITE = "SELECT value->>0 AS account, value->>1 AS resource, value->>2 AS at FROM json_each(?)"
POSTGRES = "SELECT * FROM unnest(?::int8[], ?::text[], ?::int8[]) d (account, resource, at)"
# Repeats the condition of the index activity_read, so that each denial costs one index lookup. With EXISTS, PostgreSQL
# may choose a join that reads the whole log.
READ_BEFORE = (
    "SELECT d.account, d.resource, d.at FROM ({denials}) d WHERE 1 = (SELECT 1 FROM activity r"  # noqa: S608 - constants
    " WHERE r.account_id = d.account AND r.resource = d.resource AND r.at >= d.at - {keep} AND r.at < d.at"
    f" AND r.private AND r.status < {FIRST_FAILURE} LIMIT 1)"
)


class Denial(NamedTuple):
    """A call that was denied access to a resource (403 or 404)."""

    account_id: int | None
    resource: str | None
    at: int


def read_before(calls: Iterable[Entry], keep_days: int) -> set[Denial]:
    """Return denied calls to resources that the account read in the `keep_days` days before the call.

    Use it in a transaction of the activity log.
    """
    found = _denials(calls)
    if not found:
        return set()
    columns = [list(column) for column in zip(*found, strict=True)]
    values = [orjson.dumps([list(each) for each in found]).decode()] if is_sqlite() else columns
    query = READ_BEFORE.format(denials=SQLITE if is_sqlite() else POSTGRES, keep=keep_days * DAY)
    return {Denial._make(row) for row in fetch(query, *values)}


def read_before_in(entries: Iterable[Entry], calls: Iterable[Entry]) -> set[Denial]:
    """Return the calls of `calls` (all denied) whose resource the account read earlier. `entries`: all its calls."""
    reads: dict[tuple[int | None, str | None], int] = {}
    for entry in entries:
        if entry.private and entry.status < FIRST_FAILURE:
            key = entry.account_id, entry.resource
            reads[key] = min(entry.at, reads.get(key, entry.at))
    return {denial for denial in _denials(calls) if reads.get(denial[:2], denial.at) < denial.at}


def without(calls: Iterable[Entry], known: Collection[Denial]) -> Iterator[Entry]:
    return (call for call in calls if not (denies(call) and _denial(call) in known))


def _denials(calls: Iterable[Entry]) -> list[Denial]:
    return [_denial(call) for call in calls if denies(call)]


def _denial(call: Entry) -> Denial:
    return Denial(call.account_id, call.resource, call.at)
