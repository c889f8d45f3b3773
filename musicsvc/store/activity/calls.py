"""Add, find and delete API calls in the activity log. Call all functions but `replay` in a transaction of the log."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.clock import HOUR
from musicsvc.networks import client_network, text_prefixes
from musicsvc.store.activity import sums
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import lock
from musicsvc.store.engine.store import Store
from musicsvc.store.models.activity import Activity

SLICE = 5_000
PRUNED = 2_000  # a small number, so that pruning does not delay new entries for long


class Entry(NamedTuple):
    """A logged API call. Calls without a token are combined into one entry per address, status and minute."""

    at: int  # time of arrival in microseconds
    request_id: str  # empty for a count
    account_id: int | None
    token_id: int | None
    address: str
    method: str
    route: str | None  # template of the path; None for an unknown path
    resource: str | None  # the object in the path, such as playlists/7
    status: int
    retry_after: int | None
    milliseconds: float  # for a count, the sum
    size: int  # bytes of the response body; for a count, the sum
    limits_apply: bool  # limits and abuse rules apply
    private: bool  # resources of this type can be private
    calls: int = 1  # for a count, the number of calls

    @property
    def is_count(self) -> bool:
        return not self.request_id


LOWEST_INDEXED = 400
INDEXED = SQL(f"status >= {LOWEST_INDEXED}")  # the condition of the index `activity_refused`
COLUMNS = tuple(getattr(Activity, name) for name in Entry._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Conditions on logged API calls. A condition of None matches every call."""

    account_id: int | None = None
    token_id: int | None = None
    address: str | None = None
    request_id: str | None = None
    method: str | None = None
    route: str | None = None  # text that the route contains
    statuses: tuple[int, int] | None = None  # the lowest and the highest
    since: int | None = None  # inclusive
    until: int | None = None  # exclusive
    without_routes: tuple[str, ...] = ()
    without_clicks_of: int | None = None  # an account, whose calls without a token are left out


ALL = Filter()


def parse_statuses(text: str) -> tuple[int, int]:
    """Parse a status (`429`) or class (`4xx`) into the lowest and highest status. Raises ValueError."""
    if not re.fullmatch("[1-5]([0-9]{2}|xx)", text.lower()):
        raise ValueError(f"{text!r} is not a valid status. Write 429, or 4xx for all from 400 to 499.")
    return int(text.lower().replace("x", "0")), int(text.lower().replace("x", "9"))


def add(entries: Sequence[Entry]) -> None:
    """Add the API calls to the activity log."""
    lock(sums.LOCK, shared=True)  # calls with lower ids are committed before they are summed
    bulk.insert(Activity, Entry._fields, entries)


def find(conditions: Filter = ALL, *, limit: int) -> list[Entry]:
    """Return the newest `limit` matching calls. Among these calls, the oldest comes first."""
    rows = _select(conditions).order_by(Activity.at.desc(), Activity.id.desc()).limit(limit)
    return [Entry._make(row) for row in rows.tuples()][::-1]


def of_tokens(token_ids: Collection[int], since: int) -> list[Entry]:
    """Return the calls of these tokens since a time (microseconds), oldest first."""
    chosen = Activity.token_id.in_(list(token_ids)), Activity.at >= since
    rows: Any = Activity.select(*COLUMNS).where(*chosen).order_by(Activity.at, Activity.id)
    return [Entry._make(row) for row in rows.tuples()]


def count_by_token(token_ids: Collection[int], since: int) -> dict[int, int]:
    """Return the number of calls of each token since a time (microseconds). Tokens without calls are absent."""
    chosen = Activity.token_id.in_(list(token_ids)), Activity.at >= since
    # Counting rows instead of a column needs only the index of the tokens.
    rows: Any = Activity.select(Activity.token_id, fn.COUNT(SQL("*"))).where(*chosen).group_by(Activity.token_id)
    return dict(rows.tuples())


def replay(log: Store, conditions: Filter = ALL) -> Iterator[Entry]:
    """Yield all matching calls, oldest first. Each transaction reads at most `SLICE` calls."""
    at, last = conditions.since or 0, 0
    while rows := log.read(partial(_slice, conditions, at, last)).result():
        yield from (entry for _, entry in rows)
        last, (at, *_) = rows[-1]


def _slice(conditions: Filter, at: int, last: int) -> list[tuple[int, Entry]]:
    """Return the first `SLICE` matching calls after the call with time `at` and id `last`, as (id, call)."""
    beyond = (Activity.at > at) | ((Activity.at == at) & (Activity.id > last))
    rows = _select(conditions, Activity.id).where(Activity.at >= at, beyond).order_by(Activity.at, Activity.id)
    return [(row[0], Entry._make(row[1:])) for row in rows.limit(SLICE).tuples()]


def last_id() -> int:
    """Return the id of the newest logged call, or 0 if there is none."""
    row = Activity.select(Activity.id).order_by(Activity.id.desc()).tuples().first()
    return int(row[0]) if row else 0


def written_after(entry_id: int, conditions: Filter = ALL) -> list[tuple[int, Entry]]:
    """Return at most `SLICE` matching calls with ids above `entry_id` as (id, call), ordered by id."""
    rows = _select(conditions, Activity.id).where(Activity.id > entry_id).order_by(Activity.id).limit(SLICE)
    return [(row[0], Entry._make(row[1:])) for row in rows.tuples()]


def prune(before: int, *, limit: int = PRUNED) -> int:
    """Delete at most `limit` calls before a time (microseconds), oldest first. Return the number of deleted calls."""
    oldest = Activity.select(Activity.id).where(Activity.at < before).order_by(Activity.at).limit(limit)
    deleted = int(Activity.delete().where(Activity.id.in_(oldest)).execute())
    left = Activity.select(Activity.at).where(Activity.at < before).order_by(Activity.at).limit(1).scalar()
    sums.forget((before if left is None else left) // HOUR)
    return deleted


def delete_after(instant: int) -> None:
    """Delete the calls after a time (microseconds)."""
    Activity.delete().where(Activity.at > instant).execute()
    sums.recount(instant // HOUR)


def _select(conditions: Filter, *more: Any) -> Any:
    query = Activity.select(*more, *COLUMNS)
    if conditions.address is not None:
        network = client_network(conditions.address)  # counts of calls from an IPv6 client store its network
        same = [Activity.address == text for text in {conditions.address, network}]
        same += [Activity.address.startswith(text) for text in text_prefixes(conditions.address)]
        query = query.where(reduce(or_, same))
    for name in ("account_id", "token_id", "request_id", "method"):
        if (value := getattr(conditions, name)) is not None:
            query = query.where(getattr(Activity, name) == value)
    if conditions.route is not None:
        query = query.where(Activity.route.contains(conditions.route))
    if conditions.statuses is not None:
        if conditions.statuses[0] >= LOWEST_INDEXED:
            query = query.where(INDEXED)
        query = query.where(Activity.status >= conditions.statuses[0], Activity.status <= conditions.statuses[1])
    if conditions.without_routes:
        query = query.where(Activity.route.is_null() | Activity.route.not_in(conditions.without_routes))
    if (clicker := conditions.without_clicks_of) is not None:
        others = Activity.account_id.is_null() | (Activity.account_id != clicker)
        query = query.where(others | ~Activity.token_id.is_null())
    if conditions.since is not None:
        query = query.where(Activity.at >= conditions.since)
    return query if conditions.until is None else query.where(Activity.at < conditions.until)
