"""The plays that an account reported through the API: list them, summarize them, and withdraw them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from peewee import fn

from musicsvc.clock import to_datetime
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PendingListen, Play
from musicsvc.store.plays.periods import SLOTS_PER_DAY, to_date
from musicsvc.store.plays.rollups import blocks, listeners, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection, Withdrawn
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

INDEXED = "play.reporter > 0 AND {chosen}"  # the condition of the index `play_of_reporter`
ROWS = """
    SELECT play.played_at, play.track_id, track.name, listener.key, play.reported_at
    FROM play LEFT JOIN track ON track.id = play.track_id LEFT JOIN listener ON listener.id = play.listener_id
    WHERE {chosen} AND play.reported_at IS {known}
    ORDER BY play.reported_at DESC, play.slot DESC, play.track_id, play.listener_id LIMIT ?
"""
TRACKS = """
    SELECT counted.track_id, track.name, counted.plays FROM (
        SELECT track_id, count(*) AS plays FROM play WHERE {chosen} GROUP BY track_id
    ) AS counted LEFT JOIN track ON track.id = counted.track_id ORDER BY counted.plays DESC, counted.track_id
"""
DAYS = f"SELECT DISTINCT slot / {SLOTS_PER_DAY} FROM play WHERE {{chosen}} ORDER BY 1"  # noqa: S608 - a constant
COUNT = "SELECT count(*) FROM (SELECT 1 FROM play WHERE {chosen} LIMIT ?) AS counted"


class Reports(NamedTuple):
    """The reports of an account: since a time (in microseconds), of a track.

    With `since`, plays that were reported before the time of reports was stored are not among them.
    """

    account: int
    since: int | None = None
    track: int | None = None

    def selection(self, first_day: int = 0) -> Selection:
        """Return the condition for these plays, on `first_day` (since 1970-01-01) and later."""
        conditions = {
            "play.reporter = ?": self.account,
            "play.reported_at >= ?": self.since,
            "play.track_id = ?": self.track,
            "play.slot >= ?": first_day * SLOTS_PER_DAY,
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        return Selection(" AND ".join(given), tuple(given.values()))

    def own(self) -> int | None:
        """Return the account as a listener, or None if it has no plays of its own."""
        return listeners.find([listeners.account_key(self.account)]).get(listeners.account_key(self.account))


class AccountPlay(NamedTuple):
    """A reported play. `own`: of the account's own listening. `reported_at`: None for a play of an earlier version."""

    played_at: int
    track_id: int
    track: str | None  # None for a deleted track
    own: bool
    reported_at: int | None


class TrackCount(NamedTuple):
    """A track and the number of its plays. The name of a deleted track is None."""

    track_id: int
    track: str | None
    plays: int


@dataclass(frozen=True, slots=True)
class ReportsSummary:
    """Reported plays by track, most plays first, and the days (since 1970-01-01) on which they were played.

    Plays before the day `kept_from` were deleted one by one, so they can be neither counted nor removed.
    """

    tracks: Sequence[TrackCount]
    days: Sequence[int]
    kept_from: int

    @property
    def plays(self) -> int:
        return sum(each.plays for each in self.tracks)


def newest(reports: Reports, limit: int) -> list[AccountPlay]:
    """Return the plays reported last, newest report first."""
    chosen = reports.selection()
    indexed = INDEXED.format(chosen=chosen.condition)
    own = listeners.account_key(reports.account)
    found: list[AccountPlay] = []
    for known in ("NOT NULL", "NULL"):
        rows = fetch(ROWS.format(chosen=indexed, known=known), *chosen.values, limit - len(found))
        found += [AccountPlay(at, track, name, key == own, reported) for at, track, name, key, reported in rows]
    return found


def count(reports: Reports, most: int) -> int:
    """Return the number of these plays, or `most` if there are more."""
    chosen = reports.selection()
    ((found,),) = fetch(COUNT.format(chosen=INDEXED.format(chosen=chosen.condition)), *chosen.values, most)
    return int(found)


def summarize(reports: Reports) -> ReportsSummary:
    """Count the plays that can be withdrawn: those of days whose single plays are kept."""
    kept_from = blocks.progress().kept_from
    chosen = reports.selection(kept_from)
    indexed = INDEXED.format(chosen=chosen.condition)
    tracks = [TrackCount(*row) for row in fetch(TRACKS.format(chosen=indexed), *chosen.values)]
    days = [day for (day,) in fetch(DAYS.format(chosen=indexed), *chosen.values)]
    return ReportsSummary(tracks, days, kept_from)


def withdraw(
    store: Store,
    reports: Reports,
    summary: ReportsSummary,
    *,
    now: int,
    actor: Actor,
    on_progress: Callable[[int, int], None],
) -> int:
    """Delete the plays of the summary, some thousands per transaction, and correct all counts. Return their number.

    `on_progress` is called with the number of deleted plays and the number of all.
    """
    days, deleted = summary.days, 0
    while days:
        unit = partial(_withdraw_some, reports, summary, days, deleted, now=now, actor=actor)
        done = store.write(unit).result()
        days, deleted = done.days, deleted + done.plays
        on_progress(deleted, summary.plays)
    return deleted


def _withdraw_some(
    reports: Reports, summary: ReportsSummary, days: Sequence[int], deleted: int, *, now: int, actor: Actor
) -> Withdrawn:
    """Delete plays on the first of these days. Log the first transaction of several, and the last."""
    done = _delete(reports, summary.kept_from, days)
    about = partial(security_events.add, account_id=reports.account, now=now, actor=actor)
    if not done.days:
        if deleted + done.plays:  # nothing if another withdrawal was faster
            about("plays.withdrawn", reason=describe(reports, deleted + done.plays, summary))
    elif not deleted:
        about("plays.withdrawal_started", reason=describe(reports, summary.plays, summary))
    return done


def _delete(reports: Reports, kept_from: int, days: Sequence[int]) -> Withdrawn:
    """Delete some plays. Those that had waited for their track give back the half minutes that they held."""
    own = reports.own()
    done = withdrawal.withdraw(reports.selection(kept_from), days, own)
    listen = PendingListen
    played = Play.select(Play.slot).where(Play.slot == listen.slot, Play.track == listen.counted_for)
    gone = listen.counted_for > 0, ~fn.EXISTS(played.where(Play.listener == own))
    listen.delete().where(listen.user == reports.account, *gone).execute()
    return done


def withdraw_batch(reports: Reports, *, now: int, actor: Actor) -> tuple[int, int]:
    """Delete some thousands of these plays, the earliest, and log it. Return the numbers of deleted and remaining ones.

    Call in a transaction.
    """
    summary = summarize(reports)
    done = _delete(reports, summary.kept_from, summary.days)
    left = summary.plays - done.plays
    if done.plays:
        reason = f"{done.plays:,} of " * bool(left) + describe(reports, summary.plays, summary)
        security_events.add("plays.withdrawn", account_id=reports.account, reason=reason, now=now, actor=actor)
    return done.plays, left


def describe(reports: Reports, plays: int, summary: ReportsSummary) -> str:
    """Describe plays that an account reported, with their number, tracks and days."""
    if not plays:
        return "no plays" if reports.since is None and not reports.track else "no such plays"
    tracks = f"track {reports.track}" if reports.track else quantity(len(summary.tracks), "track")
    first, last = to_date(summary.days[0]), to_date(summary.days[-1])
    played = f"on {first}" if first == last else f"from {first} to {last}"
    since = f", reported since {to_datetime(reports.since):%Y-%m-%d %H:%M:%S} UTC" if reports.since is not None else ""
    return f"{quantity(plays, 'play')} of {tracks}, played {played}{since}"
