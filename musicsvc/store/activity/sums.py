"""Sums of the logged calls by token, address, route and status, of each hour and of each day.

Calls are added some thousands at a time, in the order of their ids; in the batches in which they are written, a call
would cost several times as much. A mark in the same transaction says up to which id. With the sums of days, a window of
months is read as fast as one of a day. Call all functions in a transaction of the log.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import groupby, product
from operator import itemgetter
from struct import pack, unpack
from typing import Any, TypeAlias

from peewee import SQL, Tuple, fn

from musicsvc.clock import HOUR
from musicsvc.networks import client_network
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import compiled, gather, gathered, lock
from musicsvc.store.models import Activity, ActivityObjects, ActivityProgress, ActivitySum

TOKEN, ADDRESS, ROUTE, STATUS = range(4)  # dimensions
REFUSED = (401, 403, 404, 429)
DAY_HOURS = 24
HASH_BYTES = 8
MOST_OBJECTS = 1_000  # of a set; one more is kept, which says that there are more
MOST_ADDRESSES, SLACK = 1_000, 250  # of an hour or a day; those beyond with the fewest calls are summed together
OTHERS = "others"
SLICE = 10_000  # calls in one transaction
LOCK = 0x41435453  # "ACTS": shared by those that write calls
TOO_MANY, DENIED_BY = 429, (403, 404)
LIMITED_ROUTES = ("/api/", "/1/", "/mcp")  # without a token, they count toward the limit of the address
KEY = ("dimension", "hours", "hour", "key")
ADDED = ("calls", *(f"refused_{status}" for status in REFUSED))
VALUES = (*ADDED, "counted", "denied", "first_at", "last_at")
CALLS, COUNTED, DENIED, FIRST, LAST, OBJECTS = 0, 5, 6, 7, 8, 9  # places in a row
PLACES = {status: place for place, status in enumerate(REFUSED, 1)}
Key: TypeAlias = tuple[int, int, int, str]
Row: TypeAlias = list[Any]  # VALUES, then the set of the objects or of their hashes
Sums: TypeAlias = dict[Key, Row]


def _assignment(name: str) -> str:
    """Return the SQL that adds a new sum to a stored one. That of a day keeps the most of an hour of some values."""
    old, new = f"activity_sum.{name}", f"excluded.{name}"
    if name in ADDED:
        return f"{name} = {old} + {new}"
    chosen = f"CASE WHEN {old} {'<' if name == 'first_at' else '>'} {new} THEN {old} ELSE {new} END"
    if not name.endswith("_at"):
        chosen = f"CASE WHEN excluded.hours = 1 THEN {old} + {new} ELSE {chosen} END"
    return f"{name} = {chosen}"


SAVE = f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET {', '.join(map(_assignment, VALUES))}"
SAVE_OBJECTS = "ON CONFLICT (dimension, hours, key, hour) DO UPDATE SET hashes = excluded.hashes"


def advance() -> bool:
    """Add some new calls to the sums, or else some of before the sums. Return False if there are none."""
    return add_new() or add_earlier()


def add_new() -> bool:
    """Add the oldest of the new calls to the sums. Return False if there are none."""
    newest, _ = _progress_locked()
    waiting = Activity.select(Activity.id).where(Activity.id > newest).order_by(Activity.id).limit(SLICE).alias("new")
    last = waiting.select_from(fn.MAX(waiting.c.id)).scalar()
    if last is None:
        return False
    add(alike(newest, last, 0))
    ActivityProgress.update(newest=last).execute()
    return True


def add_earlier() -> bool:
    """Add the newest of those calls that were logged before there were sums. Return False if there are none."""
    _, oldest = _progress_locked()
    if not oldest:
        return False
    add(alike(oldest - SLICE, oldest, 0))
    left = Activity.select(fn.MAX(Activity.id)).where(Activity.id <= oldest - SLICE).scalar()
    ActivityProgress.update(oldest=left or 0).execute()
    return True


def unsummed() -> int | None:
    """Return the time of the newest call of before the sums that is not in them yet, or None if all are."""
    _, oldest = _progress()
    row = Activity.select(Activity.at).where(Activity.id <= oldest).order_by(Activity.id.desc()).tuples().first()
    return None if row is None else int(row[0])


def _progress_locked() -> tuple[int, int]:
    lock(LOCK)
    return _progress()


def _progress() -> tuple[int, int]:
    """Return the ids above which, and up to which, calls are not in the sums."""
    rows: Any = ActivityProgress.select(ActivityProgress.newest, ActivityProgress.oldest).tuples()
    newest, oldest = rows.get()
    return int(newest), int(oldest)


def add(groups: Iterable[Sequence[Any]]) -> None:
    """Add groups of calls, which `alike` returns, to the sums of hours and days."""
    hours = _by_hour(groups)
    _save(hours)
    days = _by_day(hours)
    _save(days)
    for period in {key[:3] for key in (*hours, *days) if key[0] == ADDRESS}:
        _unite(*period)


@compiled
def alike(after: int, last: int, since: int) -> Any:
    """Return the calls with ids above `after` up to `last`, from the time `since` on, in groups.

    A group: hour, token, address, route, status, whether limits apply, whether private, calls, first, last, objects.
    """
    row = Activity
    same = (row.at / HOUR, row.token_id, row.address, row.route, row.status, row.limits_apply, row.private)
    values = fn.SUM(row.calls), fn.MIN(row.at), fn.MAX(row.at), SQL(gather("resource"))
    groups = row.select(*same, *values).where(row.id > after, row.id <= last, row.at >= since)
    return groups.group_by(*(SQL(str(place)) for place in range(1, len(same) + 1)))


def _by_hour(groups: Iterable[Sequence[Any]]) -> Sums:
    sums: Sums = {}
    network, hashed = cache(client_network), cache(_hash)
    for hour, token_id, address, route, status, limits_apply, private, calls, first, last, resources in groups:
        number = int(calls)
        row: Row = [number, 0, 0, 0, 0, 0, 0, first, last, {hashed(text) for text in gathered(resources) if text}]
        if status in PLACES:
            row[PLACES[status]] = number
        counts = number if limits_apply and status != TOO_MANY else 0
        denied = counts if private and status in DENIED_BY else 0
        by_address = token_id is None and route is not None and route.startswith(LIMITED_ROUTES)
        for dimension, text, *limited in (
            (ROUTE, route or "", 0, 0),
            (STATUS, str(status), 0, 0),
            (ADDRESS, network(address), counts if by_address else 0, 0),
            (TOKEN, "", 0, 0) if token_id is None else (TOKEN, str(token_id), counts, denied),
        ):
            row[COUNTED:FIRST] = limited
            _merge(sums, (dimension, 1, hour, text), row)
    return sums


def _hash(resource: str) -> int:
    return int.from_bytes(blake2b(resource.encode(), digest_size=HASH_BYTES).digest(), "little")


def _merge(sums: Sums, key: Key, row: Row) -> None:
    """Add a row to the sum of a key, as SAVE does in the database."""
    if (found := sums.get(key)) is None:
        sums[key] = [*row[:OBJECTS], set(row[OBJECTS])]
        return
    calls, *refused, counted, denied, first, last, objects = row
    found[CALLS] += calls
    for place, number in enumerate(refused, 1):
        found[place] += number
    found[COUNTED] = found[COUNTED] + counted if key[1] == 1 else max(found[COUNTED], counted)
    found[DENIED] = found[DENIED] + denied if key[1] == 1 else max(found[DENIED], denied)
    found[FIRST], found[LAST] = min(found[FIRST], first), max(found[LAST], last)
    found[OBJECTS] |= objects


def _by_day(hours: Sums) -> Sums:
    """Return what saved sums of hours add to those of days."""
    most: dict[Key, Sequence[int]] = {}
    for period, keys in _periods(key for key, row in hours.items() if row[COUNTED]):
        most |= {(*period, key): most_of_hour for key, *most_of_hour in _counted(*period, keys)}
    days: Sums = {}
    for key, row in hours.items():
        day = (key[0], DAY_HOURS, key[2] - key[2] % DAY_HOURS, key[3])
        _merge(days, day, [*row[:COUNTED], *most.get(key, (0, 0)), *row[FIRST:]])
    return days


def _periods(keys: Iterable[Key]) -> Iterator[tuple[tuple[int, int, int], list[str]]]:
    """Yield each dimension and period with its keys."""
    for period, group in groupby(sorted(keys), itemgetter(0, 1, 2)):
        yield period, [key[3] for key in group]


def _within(model: Any, dimension: int, hours: int, hour: int) -> tuple[Any, ...]:
    return model.dimension == dimension, model.hours == hours, model.hour == hour


@compiled
def _counted(dimension: int, hours: int, hour: int, keys: Collection[str]) -> Any:
    period = _within(ActivitySum, dimension, hours, hour)
    return ActivitySum.select(ActivitySum.key, ActivitySum.counted, ActivitySum.denied).where(
        *period, ActivitySum.key.in_(keys)
    )


@compiled
def _hashes(dimension: int, hours: int, hour: int, keys: Collection[str]) -> Any:
    period = _within(ActivityObjects, dimension, hours, hour)
    return ActivityObjects.select(ActivityObjects.key, ActivityObjects.hashes).where(
        *period, ActivityObjects.key.in_(keys)
    )


@compiled
def _number(dimension: int, hours: int, hour: int) -> Any:
    return ActivitySum.select(fn.COUNT(SQL("*"))).where(*_within(ActivitySum, dimension, hours, hour))


def _save(sums: Sums) -> None:
    """Add to the stored sums and to the sets of their objects. The sums stay locked, so that no node adds between."""
    bulk.insert(ActivitySum, (*KEY, *VALUES), [(*key, *row[:OBJECTS]) for key, row in sorted(sums.items())], SAVE)
    changed = []
    for period, keys in _periods(key for key, row in sums.items() if row[OBJECTS]):
        stored = dict(_hashes(*period, keys))
        for key in keys:
            known = unpack_hashes(stored.get(key, b""))
            new = sums[*period, key][OBJECTS] - known
            if new and len(known) <= MOST_OBJECTS:
                kept = [*known, *new][: MOST_OBJECTS + 1]
                changed.append((*period, key, pack(f"<{len(kept)}Q", *kept)))
    bulk.insert(ActivityObjects, (*KEY, "hashes"), changed, SAVE_OBJECTS)


def unpack_hashes(packed: bytes) -> set[int]:
    return set(unpack(f"<{len(packed) // HASH_BYTES}Q", packed))


def _unite(*period: int) -> None:
    """If a period has too many addresses, sum those with the fewest calls as OTHERS, so that a flood stays small."""
    ((number,),) = _number(*period)
    if number <= MOST_ADDRESSES + SLACK:
        return
    few = ActivitySum.select(ActivitySum.key).where(*_within(ActivitySum, *period), ActivitySum.key != OTHERS)
    few = few.order_by(ActivitySum.calls, ActivitySum.last_at).limit(number - MOST_ADDRESSES)
    keys = [key for (key,) in few.tuples().iterator()]
    dimension, hours, hour = period
    sums: Sums = {}
    others = (dimension, hours, hour, OTHERS)
    for row in _take(ActivitySum, period, keys, VALUES):
        _merge(sums, others, [*row[:COUNTED], 0, 0, *row[FIRST:], set()])
    for (hashes,) in _take(ActivityObjects, period, keys, ("hashes",)):
        sums[others][OBJECTS] |= unpack_hashes(hashes)
    _save(sums)


def _take(model: Any, period: Sequence[int], keys: Sequence[str], columns: Sequence[str]) -> list[Any]:
    """Delete rows, and return their values: of two nodes that delete the same row, one returns it."""
    gone = model.delete().where(*_within(model, *period), model.key.in_(keys))
    return list(gone.returning(*(getattr(model, name) for name in columns)).tuples().execute())


def forget(before: int) -> None:
    """Delete the sums of hours and days that have ended before the hour `before`, as far as calls of them are gone."""
    for dimension, hours in product(range(STATUS + 1), (1, DAY_HOURS)):
        _delete(ActivitySum.dimension == dimension, ActivitySum.hours == hours, ActivitySum.hour <= before - hours)


def recount(since: int) -> None:
    """Sum again the calls of the days from that of an hour on, as some of them were deleted."""
    first = since - since % DAY_HOURS
    newest, oldest = _progress_locked()
    _delete(ActivitySum.hour >= first)
    add(alike(oldest, newest, first * HOUR))


def _delete(*conditions: Any) -> None:
    key = ("dimension", "hours", "key", "hour")
    gone = ActivitySum.select(*(getattr(ActivitySum, name) for name in key)).where(*conditions)
    ActivityObjects.delete().where(Tuple(*(getattr(ActivityObjects, name) for name in key)).in_(gone)).execute()
    ActivitySum.delete().where(*conditions).execute()
