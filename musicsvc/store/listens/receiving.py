"""Store listens that a player reports: plays of the tracks that they name, and the rest as pending listens."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from musicsvc.clock import DAY
from musicsvc.errors import Unauthenticated
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import merged, tracks
from musicsvc.store.engine import bulk, sql
from musicsvc.store.listens import matching, refusals, resolving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.listens.refusals import Reason
from musicsvc.store.models import PendingListen
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.reported import own_plays
from musicsvc.store.plays.rollups import blocks, listeners

MOST_WAITING = 10_000  # of an account
FIELDS = (
    "user", "slot", "played_at", "received_at", "names", "artist_key", "artist", "title", "release", "isrc",
    "external_id", "platform",
)  # fmt: skip
REASONS: dict[str, Reason] = {
    own_plays.TURNED_OFF: "off",
    own_plays.TOO_OLD: "old",
    ingest.PRUNED: "pruned",
    ingest.FUTURE: "future",
    own_plays.SECOND_PLAY: "half_minute",
}


def receive(
    listens: Sequence[Listen], found: Sequence[int | None], *, now: int, actor: Identity, accepted: bool, daily: int
) -> None:
    """Store the listens of an account by the rule for own plays. Those that it refuses are counted by reason.

    `found`: the tracks, as `matching.find` returned them. `accepted`, `daily`: the settings `plays.own` and
    `plays.own_daily`. Call in a transaction. Raises Unauthenticated if the account was deleted meanwhile.
    """
    sql.lock(resolving.LOCK, shared=True)
    counting.share()
    if users.missing([actor.user_id]):
        raise Unauthenticated("unknown")
    kept_from = blocks.progress().kept_from * DAY
    refused = Counter[Reason]()
    valid: list[tuple[Listen, int | None]] = []
    for listen, track in zip(listens, _current(found), strict=True):
        reason = own_plays.refuse(listen.played_at, now, accepted=accepted)
        if reason := reason or ingest.refuse_time(listen.played_at, kept_from, now):
            refused[REASONS[reason]] += 1
        else:
            valid.append((listen, track))
    if valid:
        refused += _store(valid, now, actor, daily)
    refusals.add({(actor.user_id, reason): number for reason, number in refused.items()}, now)


def _current(found: Sequence[int | None]) -> list[int | None]:
    """Return the tracks as they are now: others in place of those that were merged, None for those that are gone."""
    missing = tracks.missing({track for track in found if track is not None})
    others: dict[int, int] = merged.targets(merged.TRACK, missing)
    return [others.get(track) if track in missing else track for track in found]


def _store(valid: Sequence[tuple[Listen, int | None]], now: int, actor: Identity, daily: int) -> Counter[Reason]:
    key = listeners.account_key(actor.user_id)
    own = listeners.ensure([key])[key]
    own_plays.lock(own)
    rows = [_row(listen, track, own, actor.user_id, now) for listen, track in valid]
    texts = {(row.slot, row.names_hash): listen for row, (listen, _) in zip(rows, valid, strict=True)}
    kept, surplus = own_plays.select(rows, own, actor.user_id, daily=daily)
    refused = Counter[Reason](REASONS.get(reason, "day_full") for reason in surplus.values())
    ingest.record([row._replace(names_hash=None) for row in kept if row.track > 0], own)
    waiting = [row for row in kept if row.track < 0]
    if waiting:
        free = max(0, MOST_WAITING - _count(actor.user_id))
        refused["waiting"] += max(0, len(waiting) - free)
        resolving.skip_changes()
        _wait([(row, texts[row.slot, row.names_hash]) for row in waiting[:free]], now)
        own_plays.count(waiting[:free], own)
    counting.roll_up(len(kept))
    return +refused


def _row(listen: Listen, track: int | None, own: int, account: int, now: int) -> PlayRow:
    """Return the row of a play. A listen without a track has the negative hash of its names in place of it."""
    names, slot = matching.keys(listen)[0], listen.played_at // SLOT
    number = ~names if track is None else track
    return PlayRow(slot, number, own, WITHOUT_ID, listen.played_at, None, account, None, names, now, listen.platform)


def _count(account: int) -> int:
    waiting = PendingListen.counted_for.is_null()
    return int(PendingListen.select().where(PendingListen.user == account, waiting).count())


def _wait(rows: Sequence[tuple[PlayRow, Listen]], now: int) -> None:
    stored: list[tuple[Any, ...]] = []
    for row, listen in rows:
        texts = listen.artist, listen.title, listen.release, listen.isrc, listen.external_id, listen.platform
        stored.append((row.reporter, row.slot, row.played_at, now, *matching.keys(listen), *texts))
    bulk.insert(PendingListen, FIELDS, stored)
