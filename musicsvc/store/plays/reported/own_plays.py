"""The rules for own plays, which an account reports of its own listening: one in each half minute, and a limit by day.

Table `own_play_day` has the number of accepted plays of each day. A withdrawn play gives its place back.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from musicsvc.clock import DAY
from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import OwnPlayDay, PendingListen, Play
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays.periods import SLOTS_PER_DAY

LOCK = 0x4F574E << 32  # "OWN", above the id of a listener
OLDEST = 14 * DAY
DAILY = 600  # the default of the setting `plays.own_daily`
TOO_OLD = (
    "The time is more than 14 days ago. Report your own plays within 14 days;"
    " the operator of the service can import older ones with: musicsvc import plays"
)
SECOND_PLAY = "Your account played another track in that half minute. One of its own plays is accepted per half minute."
DAY_FULL = (
    "Your account already has {} of its own plays on that day (UTC), the most that this service accepts."
    " Do not send this play again. To report plays of listeners, ask the operator of the service for the permission."
)
TURNED_OFF = (
    "This service does not accept plays of an account's own listening."
    " To report plays of listeners, ask its operator for the permission."
)
KNOWN = """
    WITH asked (client_key) AS ({rows})
    SELECT play.client_key FROM asked CROSS JOIN play
    WHERE play.client_key = asked.client_key AND length(play.client_key) > 0
"""
ADD = """
    INSERT INTO own_play_day (day, listener_id, plays) {rows}
    ON CONFLICT (day, listener_id) DO UPDATE SET plays = own_play_day.plays + excluded.plays
"""


def refuse(played_at: int, now: int, *, accepted: bool) -> str | None:
    """Return the reason to refuse an own play for its time or for the setting `plays.own` (`accepted`), else None."""
    if not accepted:
        return TURNED_OFF
    return TOO_OLD if played_at < now - OLDEST else None


def lock(listener: int) -> None:
    """Prevent other transactions from recording own plays of this listener until this transaction ends."""
    sql.lock(LOCK + listener)


def select(
    rows: Mapping[int, PlayRow], listener: int, account: int, known: Collection[bytes], *, daily: int
) -> tuple[dict[int, PlayRow], dict[int, str]]:
    """Return the rows to store, and the reasons to refuse own plays, by their positions. Other rows are repeats.

    `listener`: the reporting `account` as a listener, which its own plays have. `known`: ids of plays that are not
    stored any more. `daily`: the most own plays of a day. A listen that waits for its track has a negative one: of its
    `names_hash`. Call after `lock`.
    """
    own = [row for row in rows.values() if row.listener == listener]
    tracks = _tracks(own, listener, account)
    counted = Counter(dict(_numbers({row.slot // SLOTS_PER_DAY for row in own}, listener)))
    repeats = {*known, *_known(row.client_key for row in rows.values() if row.client_key)}
    kept: dict[int, PlayRow] = {}
    refused: dict[int, str] = {}
    for at, row in sorted(rows.items(), key=lambda each: each[1].played_at):
        if row.client_key in repeats:
            continue
        if row.listener == listener:
            day, stored = row.slot // SLOTS_PER_DAY, tracks[row.slot]
            if stored or counted[day] >= daily:
                if row.track not in stored and (row.names_hash is None or ~row.names_hash not in stored):
                    refused[at] = SECOND_PLAY if stored else DAY_FULL.format(f"{counted[day]:,}")
                continue
            stored.add(row.track)
            counted[day] += 1
        if row.client_key:
            repeats.add(row.client_key)
        kept[at] = row
    return kept, refused


@compiled
def _numbers(days: Collection[int], listener: int) -> Any:
    """Select the numbers of own plays of this listener on these days, with the day."""
    row = OwnPlayDay
    return row.select(row.day, row.plays).where(row.day.in_(days), row.listener == listener)


def count(new: Iterable[Sequence[Any]], own: Collection[int]) -> None:
    """Count those of the new rows of the table of plays that are own plays: of the listeners `own`."""
    days = Counter((slot // SLOTS_PER_DAY, who) for slot, _, who, *_ in new if who in own) if own else Counter()
    bulk.insert_many(ADD, ("bigint", "bigint", "bigint"), [(*day, plays) for day, plays in sorted(days.items())])


def give_back(day: int, listener: int, plays: int) -> None:
    """Subtract own plays that were withdrawn."""
    if plays:
        of_day = OwnPlayDay.day == day, OwnPlayDay.listener == listener
        OwnPlayDay.update(plays=OwnPlayDay.plays - plays).where(*of_day).execute()


def _tracks(own: Iterable[PlayRow], listener: int, account: int) -> dict[int, set[int]]:
    """Return the tracks of plays of this listener in the half minutes of the rows, by half minute.

    Those of listens that wait for their tracks are negative.
    """
    found: dict[int, set[int]] = defaultdict(set)
    slots = {row.slot for row in own}
    for slot, track in _in_slots(slots, listener):
        found[slot].add(track)
    for slot, names in _waiting(slots, account) if slots else ():
        found[slot].add(~names)
    return found


@compiled
def _in_slots(slots: Collection[int], listener: int) -> Any:
    return Play.select(Play.slot, Play.track).where(Play.slot.in_(slots), Play.listener == listener)


@compiled
def _waiting(slots: Collection[int], account: int) -> Any:
    listen = PendingListen
    return listen.select(listen.slot, listen.names).where(listen.user == account, listen.slot.in_(slots))


def _known(client_keys: Iterable[bytes]) -> set[bytes]:
    asked = [(key,) for key in set(client_keys)]
    return {bytes(key) for (key,) in bulk.insert_returning(KNOWN, ["bytea"], asked)}
