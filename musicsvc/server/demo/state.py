"""The state of a running demo: its clock, its snapshots, its journal, and the rules that inject faults.

Handlers use it on threads: those that read on any, those that change it on one, which makes one change after the other.
The parts of the server that depend on its time or its data follow on the event loop, so that no other change waits on a
thread that these parts need.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from musicsvc.clock import LAST, CalendarClock, MovableClock, isoformat
from musicsvc.errors import Invalid
from musicsvc.server.demo.journal import Journal
from musicsvc.server.demo.rules import Match, Rules
from musicsvc.server.demo.scoring.card import Card
from musicsvc.server.demo.snapshots import START, Snapshot, Snapshots

PAST = "Is before {}, the time of the demo. Only POST /demo/reset and snapshots go back."
TOO_LATE = "The clock of the demo ends with the year 9998."
# With these rules a demo begins if it scores clients, so that unmodified ones meet the common faults. The seeds let the
# 5th GET be refused, and the 11th: not the first ones, by which people see if the demo works.
OCCASIONS: Sequence[dict[str, Any]] = (
    {"match": Match("GET"), "fault": "429", "probability": 0.125, "count": 1, "seed": 6},
    {"match": Match("GET"), "fault": "503", "probability": 0.125, "count": 1, "seed": 34},
    *(
        {"match": Match("POST", route), "fault": "lost-response", "probability": 1.0, "count": 1, "seed": 0}
        for route in ("/api/v1/plays", "/api/v1/playlists")
    ),
)
ON_PURPOSE = (
    "Some requests fail on purpose: the 5th GET (429), the 11th (503), and the responses to the first report of plays"
    " and the first new playlist are lost. DELETE {}/demo/faults ends this."
)


Work = Coroutine[Any, Any, None]


class DemoState:
    def __init__(self, clock: MovableClock, database: Path) -> None:
        self.clock = clock
        self.origin = ""  # scheme, host and port of the server, once it has started
        self.limit_clock = CalendarClock(clock)
        self.rules = Rules()
        self.journal = Journal()
        self.card: Card | None = None
        self.end_card: Callable[[], None] = lambda: None
        self.snapshots = Snapshots(database)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def sources(self) -> dict[str, Any]:
        """The values of parameters of handlers, by name."""
        return {"demo": self, "rules": self.rules, "journal": self.journal}

    def begin(self, now: int) -> None:
        """Save the database and the time `now`, to which `reset` goes back. Call this before the server starts."""
        self.snapshots.save(START, now)

    def attach(
        self, loop: asyncio.AbstractEventLoop, advanced: Callable[[], Work], restored: Callable[[int], Work]
    ) -> None:
        """Let a server follow the clock when it is moved forward, or set back with the database to a time."""
        self._loop, self._advanced, self._restored = loop, advanced, restored

    def score(self, card: Card, end: Callable[[], None]) -> None:
        """Keep a report card of the clients. `end` is called when the server has stopped."""
        self.card, self.end_card = card, end
        self.journal.watch(card.ended, card.restarted)
        self._add_rules()

    def _add_rules(self) -> None:
        for rule in OCCASIONS if self.card is not None else ():
            self.rules.add(**rule)

    def advance(self, microseconds: int) -> None:
        """Move the clock forward. Raises Invalid if it would move beyond its end."""
        self._require_possible("advance", self.clock.now() + microseconds)
        self.clock.advance(microseconds)
        self._follow()

    def move_to(self, instant: int) -> None:
        """Move the clock forward to an instant. Raises Invalid if that is in the past, or beyond its end."""
        if instant < (now := self.clock.now()):
            raise Invalid({"to": PAST.format(isoformat(now))})
        self._require_possible("to", instant)
        self.clock.set(instant)
        self._follow()

    @staticmethod
    def _require_possible(field: str, instant: int) -> None:
        if instant >= LAST:
            raise Invalid({field: TOO_LATE})

    def restore(self, name: str) -> Snapshot:
        """Go back to the data and the time of a snapshot. Raises NotFound if there is none with this name."""
        snapshot = self.snapshots.restore(name)
        self.clock.set(snapshot.now)
        if self.card is not None:
            self.card.forget()
        self._follow(restored=snapshot.now)
        return snapshot

    def reset(self) -> None:
        """Go back to the data and the time of the start, and delete the journal and the rules that were added."""
        self.rules.clear()
        self.restore(START)
        self.journal.restart()
        self._add_rules()

    def _follow(self, restored: int | None = None) -> None:
        """Let the server follow, and wait for that. `restored`: the time to which clock and database were set back."""
        if self._loop is not None:
            work = self._advanced() if restored is None else self._restored(restored)
            asyncio.run_coroutine_threadsafe(work, self._loop).result()
