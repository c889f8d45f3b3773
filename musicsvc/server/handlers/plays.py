"""Report plays of tracks."""

from collections import Counter

from musicsvc.config import Settings
from musicsvc.server.schemas.plays import PlaysIn
from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay

# Names of the reasons for which plays are refused, for metrics. Other reasons are those of `OWN`.
REASONS = {
    tracks.UNKNOWN: "unknown_track",
    ingest.FUTURE: "future",
    ingest.TOO_OLD: "old",
    ingest.PRUNED: "pruned",
    ingest.FOR_OTHERS: "for_others",
}
OWN = "own"  # the rules for the account's own plays


def report(body: PlaysIn, caller: Identity, settings: Settings, now: int) -> JSON:
    """Report plays: a malformed one fails the whole batch, each of the others is accepted or refused on its own."""
    plays = [ReportedPlay(p.track_id, p.played_at, p.listener, p.duration_ms, p.client_id) for p in body.plays]
    own = settings.plays
    outcome = ingest.report(plays, now=now, actor=caller, own_accepted=own.own, own_daily=own.own_daily)
    refused = [{"index": index, "reason": reason} for index, reason in outcome.refused]
    return ok(accepted=outcome.accepted, repeated=outcome.repeated, refused=refused)


def count_outcomes(answer: JSON) -> Counter[str]:
    """Return the number of `accepted` plays, and of refused plays by the name of the reason."""
    refused = Counter(REASONS.get(play["reason"], OWN) for play in answer["refused"])
    return refused + Counter({"accepted": answer["accepted"]})
