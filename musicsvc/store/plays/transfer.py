"""Move all plays of a track to another one, and correct all counts.

Of the plays of one listener in one half minute, of both tracks, one stays: one without a client's id or, if all have
one, one of the other track. Ids of the rest are kept (table `dropped_play`), so that repeated reports are recognized.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import compiled, fetch, in_list, run, run_many
from musicsvc.store.models import DroppedPlay, PendingListen
from musicsvc.store.plays import ranks, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, counts, reader, recount, withdrawal
from musicsvc.store.plays.subjects import TRACK, Subject

SAME = f"""
    SELECT DISTINCT p.slot, p.listener_id FROM {{given}} CROSS JOIN play p
    WHERE p.slot / {SLOTS_PER_DAY} = given.value AND p.track_id = ? AND EXISTS (
        SELECT 1 FROM play o WHERE o.slot = p.slot AND o.track_id = ? AND o.listener_id = p.listener_id
    )
"""  # noqa: S608 - a constant
PLAYS = """
    SELECT p.slot, p.track_id, p.listener_id, p.client_key, p.names_hash, p.played_at
    FROM {given} CROSS JOIN play p WHERE p.slot = given.value AND p.track_id {both}
"""
REMEMBER = "INSERT INTO dropped_play (slot, listener_id, client_key, names_hash) {rows}"
MOVE = f"UPDATE play SET track_id = ? WHERE slot / {SLOTS_PER_DAY} {{days}} AND track_id = ?"  # noqa: S608 - a constant
KNOWN = """
    WITH asked (client_key) AS ({rows})
    SELECT d.client_key FROM asked CROSS JOIN dropped_play d WHERE d.client_key = asked.client_key
"""


class RepeatedPlay(NamedTuple):
    """A play of one of two tracks, whose listener has another play in this half minute."""

    slot: int
    track: int
    listener: int
    client_key: bytes
    names_hash: int | None


def repeated(source: int, target: int) -> list[RepeatedPlay]:
    """Return the plays that go if the plays of the track `source` move to the track `target`."""
    return _repeated(source, target, _days(source))


def move(source: int, target: int) -> list[int]:
    """Move the plays of the track `source` to `target`. Return the days on which they were played.

    The counts of both tracks are right then. The caller must hold `counting.lock`, and count those of albums and
    artists again (`renew`) as soon as their tracks are right.
    """
    days = _days(source)
    if not days:
        return days
    dropped = _repeated(source, target, days)
    run_many(withdrawal.DROP, [play[:4] for play in dropped])
    remembered = [(play.slot, *play[2:]) for play in dropped if play.client_key]
    bulk.insert_many(REMEMBER, ("bigint", "bigint", "bytea", "bigint"), remembered)
    among, values = in_list(days)
    run(MOVE.format(days=among), target, values, source)
    PendingListen.update(counted_for=target).where(PendingListen.counted_for == source).execute()
    _count(source, target, days, dropped)
    total = sum(reader.all_time_plays(TRACK, [source, target]).values())
    ranks.replace({source: None, target: total - len(dropped)})
    return days


def renew(days: Collection[int], others: Iterable[Subject]) -> None:
    """Count these albums and artists again on these days."""
    kinds = (subject for subject in others if subject.kind != TRACK)
    recount.renew({counts.key(counts.DAY, day, kind, subject) for kind, subject in kinds for day in days})


def dropped(client_keys: Collection[bytes]) -> set[bytes]:
    """Return those of the clients' ids, given as hashes, that plays had which a move dropped."""
    if not client_keys or not _any_dropped():
        return set()
    return {bytes(key) for (key,) in bulk.insert_returning(KNOWN, ["bytea"], [(key,) for key in client_keys])}


@compiled
def _any_dropped() -> Any:
    return DroppedPlay.select(DroppedPlay.slot).limit(1)


def _days(track: int) -> list[int]:
    """Return the days (since 1970-01-01) on which the track was played."""
    some = {day for days, played in reader.spans(TRACK, [track]) if played for day in days}
    return counts.days_stored(some, TRACK, [track])


def _repeated(source: int, target: int, days: Sequence[int]) -> list[RepeatedPlay]:
    if not days:
        return []
    given, numbers = sql.table_of(days)
    same = {(slot, who) for slot, who in fetch(SAME.format(given=given), numbers, source, target)}
    if not same:
        return []
    given, slots = sql.table_of(sorted({slot for slot, _ in same}))
    both, tracks = in_list([source, target])
    plays: dict[tuple[int, int], list[tuple[Any, ...]]] = defaultdict(list)
    for slot, track, who, key, names, at in fetch(PLAYS.format(given=given, both=both), slots, tracks):
        if (slot, who) in same:
            play = RepeatedPlay(slot, track, who, bytes(key), names)
            plays[slot, who].append((len(key) > 0, track != target, at, play.client_key, play))
    return [play for some in plays.values() for *_, play in sorted(some)[1:]]


def _count(source: int, target: int, days: Sequence[int], dropped: Iterable[RepeatedPlay]) -> None:
    """Count the rows of both tracks: by adding both up, or from single plays if some go or the lengths differ."""
    lengths = subjects.of_tracks([source, target]).lengths
    changed = {play.slot // SLOTS_PER_DAY for play in dropped} if lengths[source] == lengths[target] else {*days}
    changed.difference_update(range(blocks.progress().kept_from))  # days without single plays
    rows = counts.fetch_rows(counts.ROWS, counts.starts({*days} - changed), TRACK, [source, target])
    summed = counts.add_up((key - (key & counts.LAST_ID) + target, *some) for key, *some in rows)
    former = {counts.key(counts.DAY, day, TRACK, source) for day in days}
    counts.replace(former | summed.keys(), summed)
    recounted = {counts.key(counts.DAY, day, TRACK, target) for day in changed}
    recount.renew_days(recounted)
    recount.renew_blocks(former | recounted | summed.keys())
