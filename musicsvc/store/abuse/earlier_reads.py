"""Find denied calls that are not abuse, because the account could read the resource before it was hidden or deleted."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from peewee import SQL, Select

from musicsvc.clock import DAY
from musicsvc.store.abuse.probing_rule import FIRST_FAILURE, denies
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.sql import current, table_of_rows
from musicsvc.store.models import Activity


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
    return {Denial._make(row) for row in query(found, keep_days).tuples().execute(current())}


def query(found: Sequence[Denial], keep_days: int) -> Any:
    """Return the query for those of the denials that came after a read."""
    denials = table_of_rows([list(each) for each in found], "denial", account="int8", resource="text", at="int8")
    account, resource, at = SQL("denial.account"), SQL("denial.resource"), SQL("denial.at")
    # Repeats the condition of the index activity_read, so that each denial costs one index lookup. With EXISTS,
    # PostgreSQL may choose a join that reads the whole log.
    indexed = Activity.private & SQL(f"status < {FIRST_FAILURE}")
    reads = Activity.select(SQL("1")).where(Activity.account_id == account, Activity.resource == resource, indexed)
    reads = reads.where(Activity.at >= at - keep_days * DAY, Activity.at < at).limit(1)
    return Select([denials], [account, resource, at]).where(SQL("1") == reads)


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
