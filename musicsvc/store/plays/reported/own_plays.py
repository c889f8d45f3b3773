"""The rule for own plays: of the plays that an account reports of its own listening, one counts in each half minute."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from musicsvc.clock import DAY
from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import fetch

R = TypeVar("R", bound="Row")

LOCK = 0x4F574E << 32  # "OWN", above the id of a listener
OLDEST = 14 * DAY
TOO_OLD = (
    "The time is more than 14 days ago. Report your own plays within 14 days;"
    " the operator of the service can import older ones with: musicsvc import plays"
)
SECOND_PLAY = "Your account played another track in that half minute. One of its own plays is accepted per half minute."
TURNED_OFF = (
    "This service does not accept plays of an account's own listening."
    " To report plays of listeners, ask its operator for the permission."
)
IN_SLOTS = """
    SELECT play.slot, play.track_id FROM {slots} CROSS JOIN play
    WHERE play.slot = given.value AND play.listener_id = ?
"""
KNOWN = """
    WITH asked (client_key) AS ({rows})
    SELECT play.client_key FROM asked CROSS JOIN play
    WHERE play.client_key = asked.client_key AND length(play.client_key) > 0
"""


class Row(Protocol):
    """The columns of a new row of the table of plays by which the rule decides."""

    @property
    def slot(self) -> int: ...
    @property
    def track(self) -> int: ...
    @property
    def listener(self) -> int: ...
    @property
    def client_key(self) -> bytes: ...
    @property
    def played_at(self) -> int: ...


def refuse(played_at: int, now: int, *, accepted: bool) -> str | None:
    """Return the reason to refuse an own play for its time or for the setting `plays.own` (`accepted`), else None."""
    if not accepted:
        return TURNED_OFF
    return TOO_OLD if played_at < now - OLDEST else None


def lock(listener: int) -> None:
    """Prevent other transactions from recording own plays of this listener until this transaction ends."""
    sql.lock(LOCK + listener)


def select(rows: Sequence[R], listener: int) -> tuple[list[R], list[int]]:
    """Return the rows to store, and the positions of own plays to refuse. Other rows are left out as repeats.

    `listener`: the reporting account as a listener, which its own plays have. Call after `lock`.
    """
    own = [row for row in rows if row.listener == listener]
    tracks = _tracks(own, listener)
    known = _known(row.client_key for row in own if row.client_key)
    kept: list[R] = []
    refused: list[int] = []
    for at, row in sorted(enumerate(rows), key=lambda each: each[1].played_at):
        if row.client_key in known:
            continue
        if row.listener == listener:
            if tracks[row.slot]:
                if row.track not in tracks[row.slot]:
                    refused.append(at)
                continue
            tracks[row.slot].add(row.track)
        if row.client_key:
            known.add(row.client_key)
        kept.append(row)
    return kept, refused


def _tracks(own: Iterable[Row], listener: int) -> dict[int, set[int]]:
    """Return the tracks that are stored as plays of this listener in the half minutes of the rows, by half minute."""
    given, slots = sql.table_of(sorted({row.slot for row in own}))
    found: dict[int, set[int]] = defaultdict(set)
    for slot, track in fetch(IN_SLOTS.format(slots=given), slots, listener):
        found[slot].add(track)
    return found


def _known(client_keys: Iterable[bytes]) -> set[bytes]:
    asked = [(key,) for key in set(client_keys)]
    return {bytes(key) for (key,) in bulk.insert_returning(KNOWN, ["bytea"], asked)}
