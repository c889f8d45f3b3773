"""Store listens that a player reports: plays of the tracks that they name, and the rest as pending listens."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.engine import bulk, sql
from musicsvc.store.listens import matching, pending, refusals, resolving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.listens.refusals import Reason
from musicsvc.store.models import PendingListen
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.reported import own_plays

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
    counting.share()  # no track goes from now on
    gone = tracks.gone({track for track in found if track is not None})
    plays: list[ReportedPlay] = []
    keys = [matching.keys(listen) for listen in listens]
    for listen, (names, _), known in zip(listens, keys, found, strict=True):
        track = known and gone.get(known, known)
        plays.append(ReportedPlay(track or ~names, listen.played_at, platform=listen.platform, names=names))
    outcome = ingest.report(plays, now=now, actor=actor, own_accepted=accepted, own_daily=daily)
    refused = Counter[Reason](REASONS.get(reason, "day_full") for _, reason in outcome.refused)
    if outcome.waiting:
        rows = [(row, listens[index], keys[index]) for index, row in outcome.waiting.items()]
        free = max(0, MOST_WAITING - pending.waiting(actor.user_id).count())
        refused["waiting"] = len(rows[free:])
        _wait(rows[:free], now)
    refusals.add({(actor.user_id, reason): number for reason, number in refused.items()}, now)


def _wait(rows: Sequence[tuple[PlayRow, Listen, tuple[int, int]]], now: int) -> None:
    stored: list[tuple[Any, ...]] = []
    for row, listen, keys in rows:
        texts = listen.artist, listen.title, listen.release, listen.isrc, listen.external_id, listen.platform
        stored.append((row.reporter, row.slot, row.played_at, now, *keys, *texts))
    resolving.skip_changes()
    bulk.insert(PendingListen, FIELDS, stored)
    own_plays.count([row for row, _, _ in rows], {row.listener for row, _, _ in rows})
