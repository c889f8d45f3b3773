"""How many requests are let in within a time: the rule, and counting by it in the memory of one process.

A key's first request begins a window, and windows follow each other while requests come. A window lets in `amount` at
most; those of the window before still count as if they had come evenly, fewer and fewer of them. What is refused does
not count. Times are milliseconds of any clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from musicsvc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECOND = 1000
AHEAD = 5 * SECOND  # a window that begins later than this was begun before the machine's clock began anew
# Counted as time gone by: the first request of a window is out of sight when the next window begins, and times are
# rounded, so that who keeps exactly to the rate is let in.
GRACE = 2
MOST_IN_MEMORY = 50_000

# `{now}` is repeated as `excluded.began`. A request that is not let in changes nothing and gives no row.
ANEW = f"(quota.began > excluded.began + {AHEAD} OR excluded.began >= quota.began + 2 * {{window}})"
NEXT = "excluded.began >= quota.began + {window}"
GONE_OF_NEXT = f"{{least}}({{window}}, excluded.began - quota.began - {{window}} + {GRACE})"
GONE = f"{{least}}({{window}}, {{greatest}}(0, excluded.began - quota.began) + {GRACE})"
TAKE = f"""
    ON CONFLICT (key) DO UPDATE SET
        began = CASE WHEN {ANEW} THEN excluded.began WHEN {NEXT} THEN quota.began + {{window}} ELSE quota.began END,
        taken = CASE WHEN {ANEW} OR {NEXT} THEN 1 ELSE quota.taken + 1 END,
        earlier = CASE WHEN {ANEW} THEN 0 WHEN {NEXT} THEN quota.taken ELSE quota.earlier END,
        ends = CASE WHEN {ANEW} OR {NEXT} THEN excluded.ends ELSE quota.ends END
    WHERE CASE
        WHEN {ANEW} THEN 0
        WHEN {NEXT} THEN quota.taken * ({{window}} - {GONE_OF_NEXT}) / {{window}}
        ELSE quota.earlier * ({{window}} - {GONE}) / {{window}} + quota.taken END < {{amount}}
    RETURNING began, taken, earlier
"""


class Busy(Unavailable):
    """Another process counts just now; a moment later it will not."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in a window of so many milliseconds."""

    name: str
    amount: int
    window: int


class Demand(NamedTuple):
    """One request that counts to a limit, for a token or an address."""

    limit: Limit
    whose: str

    @property
    def key(self) -> str:
        """Under which it is counted."""
        return f"{self.limit.name}:{self.whose}"


class Row(NamedTuple):
    """What is kept of a key: when its window began, how many it has let in, and how many the one before."""

    began: int
    taken: int
    earlier: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a limit stands after a request: how many more would be let in at once, and for how many milliseconds.

    Where none would be, `wait` is the time until one is; else that until the window ends.
    """

    limit: Limit
    let_in: bool
    remaining: int
    wait: int


class Quotas(ABC):
    """Counts demands; `take` is the one way in, `give_back` the one out."""

    def take(self, demands: Sequence[Demand]) -> list[Standing]:
        """Let a request in that makes these demands, or refuse it, and then count it nowhere."""
        counted = [self._count(demand) for demand in demands]
        if not all(let_in for _, _, let_in in counted):
            for demand, (_, _, let_in) in zip(demands, counted, strict=True):
                if let_in:
                    self._give_back(demand)
            counted = [(row._replace(taken=row.taken - let_in), now, let_in) for row, now, let_in in counted]
        return [
            standing(demand.limit, row, now, let_in=let_in)
            for demand, (row, now, let_in) in zip(demands, counted, strict=True)
        ]

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Uncount a request that was allowed but could not be served."""
        for demand in demands:
            self._give_back(demand)

    @abstractmethod
    def _count(self, demand: Demand) -> tuple[Row, int, bool]:
        """The row as it stands now, with this request in it where it was let in; the time; whether it was."""

    @abstractmethod
    def _give_back(self, demand: Demand) -> None:
        """Uncount a request, as far as the window still holds it."""

    @abstractmethod
    def purge(self) -> None:
        """Drop rows that no longer tell anything, and the oldest where there are far too many."""


class SharedQuotas(Protocol):
    """Counts with other processes. All but `take_at_once` may wait, so that the event loop leaves it to a thread.

    Whatever cannot be done raises Unavailable with the reason.
    """

    threads: int

    def open(self) -> None:
        """Begin to count, or begin anew after a fault."""

    def take_at_once(self, demands: Sequence[Demand]) -> list[Standing]:
        """As `take`; raises Busy where that would have to wait."""

    def take(self, demands: Sequence[Demand]) -> list[Standing]:
        """Let a request in that makes these demands, or refuse it."""

    def give_back(self, demands: Sequence[Demand]) -> None:
        """Uncount a request that was allowed but could not be served."""

    def purge(self) -> None:
        """Drop rows that no longer tell anything, and the oldest where there are far too many."""

    def in_place(self) -> bool:
        """Whether others that begin to count would count with us."""

    def close(self) -> None:
        """Let go of files and connections."""


class MemoryQuotas(Quotas):
    """Counts for one process; where keys are many the one unused for longest is forgotten."""

    def __init__(self, clock: Callable[[], int], most: int = MOST_IN_MEMORY) -> None:
        self._clock = clock
        self._rows: OrderedDict[str, tuple[Row, int]] = OrderedDict()
        self._most = most

    def __len__(self) -> int:
        return len(self._rows)

    def _count(self, demand: Demand) -> tuple[Row, int, bool]:
        now, limit = self._clock(), demand.limit
        kept = self._rows.get(demand.key)
        row = Row(now, 0, 0) if kept is None else at(limit, kept[0], now)
        let_in = _still(limit, row, now) + row.taken < limit.amount
        if let_in:
            row = row._replace(taken=row.taken + 1)
            self._rows[demand.key] = row, row.began + 2 * limit.window
            self._rows.move_to_end(demand.key)
            if len(self._rows) > self._most:
                self._rows.popitem(last=False)
        return row, now, let_in

    def _give_back(self, demand: Demand) -> None:
        if demand.key in self._rows:
            row, ends = self._rows[demand.key]
            self._rows[demand.key] = row._replace(taken=max(0, row.taken - 1)), ends

    def purge(self) -> None:
        """Drop rows whose windows are over."""
        now = self._clock()
        self._rows = OrderedDict((key, kept) for key, kept in self._rows.items() if kept[1] > now)


def at(limit: Limit, row: Row, now: int) -> Row:
    """The row as it stands at this time."""
    if row.began > now + AHEAD or now >= row.began + 2 * limit.window:
        return Row(now, 0, 0)
    if now >= row.began + limit.window:
        return Row(row.began + limit.window, 0, row.taken)
    return row


def standing(limit: Limit, row: Row, now: int, *, let_in: bool) -> Standing:
    """What is told of a row that stands at this time."""
    remaining = max(0, limit.amount - _still(limit, row, now) - row.taken) if let_in else 0
    wait = _until_free(limit, row, now) if remaining == 0 else row.began + limit.window - now
    return Standing(limit, let_in, remaining, wait)


def _still(limit: Limit, row: Row, now: int) -> int:
    """How many of the window before still count."""
    gone = min(limit.window, max(0, now - row.began) + GRACE)
    return row.earlier * (limit.window - gone) // limit.window


def _until_free(limit: Limit, row: Row, now: int) -> int:
    """The milliseconds until one more is let in."""
    if row.taken < limit.amount:
        return max(0, row.began + _thinned(limit, row.earlier, limit.amount - row.taken) - now)
    return row.began + limit.window + _thinned(limit, row.taken, limit.amount) - now


def _thinned(limit: Limit, earlier: int, room: int) -> int:
    """How far into a window fewer than `room` of those before it still count."""
    if earlier < room:
        return 0
    return max(0, limit.window - GRACE - (room * limit.window - 1) // earlier)
