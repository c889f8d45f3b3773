"""Find who called most in a window of whole hours, by token, address, route or status, from the sums of the log.

Who is near a limit or a rule against abuse comes first.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Self

from peewee import SQL, Case, fn

from musicsvc.clock import DAY, HOUR
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.setting_types import rate
from musicsvc.store.activity import sums
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.sums import ADDED, ADDRESS, DAY_HOURS, MOST_OBJECTS, OTHERS, REFUSED, TOKEN
from musicsvc.store.models import Activity, ActivityObjects, ActivitySum
from musicsvc.wording import quantity

DIMENSIONS = ("token", "address", "route", "status")
NEAR_PERCENT = 80  # of the calls that a limit allows in an hour
NEAR_PART = 2  # a half of the resources that the rule against probing allows
MOST_COUNTED = 50_000  # calls of an hour whose objects are counted one by one
MORE = f"{MOST_OBJECTS:,}+"
HOUR_SECONDS = 3_600


class Window(NamedTuple):
    """Whole hours, counted since 1970, from `start` to before `end`."""

    start: int
    end: int

    @classmethod
    def around(cls, since: int, until: int | None, now: int, keep_days: int) -> Self:
        """Return the window from an instant until before another one, or until now, as far as calls are kept."""
        start = max(since, now - keep_days * DAY, 0) // HOUR
        end = now + 1 if until is None else min(until, now + 1)
        return cls(start, max(start + 1, -(-end // HOUR)))

    def parts(self) -> list[tuple[int, int, int]]:
        """Return lengths of sums, each with the hours where they begin: whole days, and single hours at both ends."""
        first, last = -(-self.start // DAY_HOURS) * DAY_HOURS, self.end // DAY_HOURS * DAY_HOURS
        if first >= last:
            return [(1, self.start, self.end)]
        return [(1, self.start, first), (DAY_HOURS, first, last), (1, last, self.end)]


class Bounds(NamedTuple):
    """Calls in an hour: those that the limit allows, those that are near it, and denied ones that are near a rule."""

    hourly: int
    counted: int
    denied: int

    @classmethod
    def of(cls, dimension: int, settings: Settings) -> Self:
        amount, seconds = rate(settings.limits.token if dimension == TOKEN else settings.limits.address)
        hourly = max(1, amount * HOUR_SECONDS // seconds)
        return cls(hourly, max(1, hourly * NEAR_PERCENT // 100), max(1, settings.abuse.probes // NEAR_PART))


class Caller(NamedTuple):
    """The sum of a token, address, route or status (`key`; empty: none). `refused`: refusals by status.

    `share`: percent of the calls that the limit allows in an hour, in the hour with most. `near`: a limit or a rule.
    `objects`: different ones, or MORE.
    """

    key: str
    calls: int
    refused: Mapping[int, int]
    first_at: int
    last_at: int
    share: int | None
    near: str | None
    objects: int | str = 0

    @property
    def refusals(self) -> int:
        return sum(self.refused.values())


class Found(NamedTuple):
    """The first callers of `total`. `unsummed`: the time of the newest call of before the sums that they lack."""

    callers: Sequence[Caller]
    total: int
    unsummed: int | None


def find(
    log: Log, by: str, window: Window, settings: Settings, *, limit: int, near: bool = False, keys: Collection[str] = ()
) -> Found:
    """Return the callers of a window, those near a limit or rule first, then those with most calls.

    `near`: only the former. `keys`: only these. Raises Failure if the log cannot be read.
    """
    if not log.open_existing():
        return Found([], 0, None)
    with suppress(Failure):  # such as a full disk
        while log.write(sums.add_new).result():
            pass
    return log.read(partial(_find, DIMENSIONS.index(by), window, settings, limit=limit, near=near, keys=keys)).result()


def _find(
    dimension: int, window: Window, settings: Settings, *, limit: int, near: bool, keys: Collection[str]
) -> Found:
    bounds = Bounds.of(dimension, settings)
    rows = list(_grouped(dimension, window, bounds, keys, near=near).limit(limit).tuples().iterator())
    callers = [_caller(dimension, bounds, key, *map(int, numbers)) for key, *numbers, _ in rows]
    objects = _objects(dimension, window, callers)
    total = int(rows[0][-1]) if rows else 0
    return Found([each._replace(objects=objects[each.key]) for each in callers], total, sums.unsummed())


def _grouped(dimension: int, window: Window, bounds: Bounds, keys: Collection[str], *, near: bool) -> Any:
    parts = [ActivitySum.select().where(*_part(ActivitySum, dimension, *part, keys)) for part in window.parts()]
    rows = reduce(add, parts).alias("part")
    added = [fn.SUM(getattr(rows.c, name)) for name in ADDED]
    most = fn.MAX(rows.c.counted), fn.MAX(rows.c.denied)
    times = fn.MIN(rows.c.first_at), fn.MAX(rows.c.last_at)
    is_near = (added[-1] > 0) | (most[0] >= bounds.counted) | (most[1] >= bounds.denied)
    query = rows.select_from(rows.c.key, *added, *most, *times, fn.COUNT(SQL("*")).over()).group_by(rows.c.key)
    first = [Case(None, [(is_near, 0)], 1)] if dimension in {TOKEN, ADDRESS} else []
    query = query.order_by(*first, added[0].desc(), rows.c.key)
    return query.having(is_near) if near else query


def _part(model: Any, dimension: int, hours: int, first: int, end: int, keys: Collection[str]) -> list[Any]:
    conditions = [model.dimension == dimension, model.hours == hours, model.hour >= first, model.hour < end]
    return [*conditions, model.key.in_(list(keys))] if keys else conditions


def _caller(dimension: int, bounds: Bounds, key: str, calls: int, *numbers: int) -> Caller:
    *refused, counted, denied, first_at, last_at = numbers
    share, near = None, None
    if dimension in {TOKEN, ADDRESS}:
        share = counted * 100 // bounds.hourly if counted and key not in {"", OTHERS} else None
        reached = f"{quantity(refused[-1], 'call')} beyond a limit" if refused[-1] else None
        close = f"{share} % of its limit" if counted >= bounds.counted else None
        probing = f"{quantity(denied, 'call')} denied in an hour" if denied >= bounds.denied else None
        near = "; ".join(reason for reason in (reached, close, probing) if reason) or None
    return Caller(key, calls, dict(zip(REFUSED, refused, strict=True)), first_at, last_at, share, near)


def _objects(dimension: int, window: Window, callers: Sequence[Caller]) -> dict[str, int | str]:
    """Return the numbers of different objects: exact up to MOST_OBJECTS, and in a window of one hour."""
    sets: dict[str, set[int]] = {caller.key: set() for caller in callers}
    parts = window.parts() if sets else []
    key, hashes = ActivityObjects.key, ActivityObjects.hashes
    for part in parts:  # full sets, whose lengths are read without them
        full = fn.LENGTH(hashes) > sums.HASH_BYTES * MOST_OBJECTS
        rows = ActivityObjects.select(key).where(*_part(ActivityObjects, dimension, *part, sets), full).distinct()
        sets |= {name: set(range(MOST_OBJECTS + 1)) for (name,) in rows.tuples().iterator()}
    few = [name for name, each in sets.items() if not each]
    for part in parts if few else ():
        rows = ActivityObjects.select(key, hashes).where(*_part(ActivityObjects, dimension, *part, few))
        for name, packed in rows.tuples().iterator():
            if len(sets[name]) <= MOST_OBJECTS:
                sets[name] |= sums.unpack_hashes(packed)
    found: dict[str, int | str] = {key: len(each) if len(each) <= MOST_OBJECTS else MORE for key, each in sets.items()}
    many = {caller.key: caller.calls for caller in callers if found[caller.key] == MORE}
    if many and window.end - window.start == 1 and sum(many.values()) <= MOST_COUNTED:
        found |= _counted(dimension, window.start, many)
    return found


def _counted(dimension: int, hour: int, keys: Collection[str]) -> dict[str, int]:
    """Count the different objects of an hour in the calls themselves. Networks and calls without a token are absent."""
    column = (Activity.token_id, Activity.address, Activity.route, Activity.status)[dimension]
    chosen = list(map(int, filter(None, keys)) if dimension in {TOKEN, sums.STATUS} else keys)
    query = Activity.select(column, fn.COUNT(Activity.resource.distinct())).group_by(column)
    rows = query.where(column.in_(chosen), Activity.at >= hour * HOUR, Activity.at < (hour + 1) * HOUR)
    return {str(key): int(number) for key, number in rows.tuples().iterator()}
