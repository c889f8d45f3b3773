"""The plays that an account reported through the API, and their withdrawal."""

from musicsvc.clock import DAY, isoformat, parse_time_or_age
from musicsvc.errors import Conflict, Invalid
from musicsvc.server.schemas.pages.admin import WithdrawalForm
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.models import User
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

RECENT = 30 * DAY
MOST_COUNTED = 1_000_000
MOST_WITHDRAWN = 200_000  # with pages; the command withdraws any number
SHOWN_TRACKS = 20
NO_TIME = "Must be a time (2026-01-31T12:00:00Z) or an age (15m, 7d)."


def withdraw(subject: User, body: WithdrawalForm, caller: SessionIdentity, now: int) -> View | Redirect:
    """Show the plays that will be withdrawn or, once confirmed, withdraw them."""
    reports = Reports(subject.id, _since(body.since, now), body.track)
    if account_plays.count(reports, MOST_WITHDRAWN) == MOST_WITHDRAWN:
        command = f"musicsvc plays withdraw --user {subject.email}"
        raise Conflict(f"These are {MOST_WITHDRAWN:,} plays or more. Withdraw them on the server with: {command}")
    if body.confirmed:
        done, left = account_plays.withdraw_batch(reports, now=now, actor=Administrator(caller.user_id))
        more = f" {quantity(left, 'play')} remain: withdraw again." if left else ""
        return Redirect(f"/admin/accounts/{subject.id}", f"{quantity(done, 'play')} withdrawn.{more}")
    summary = account_plays.summarize(reports)
    if not summary.plays:
        raise Conflict("The account reported no such plays that can be withdrawn.")
    values = {
        "user": subject,
        "about": account_plays.describe(reports, summary.plays, summary),
        "plays": summary.plays,
        "tracks": summary.tracks[:SHOWN_TRACKS],
        "more_tracks": len(summary.tracks) - SHOWN_TRACKS,
        "kept_from": to_date(summary.kept_from).isoformat() if summary.kept_from else None,
        "since": "" if reports.since is None else isoformat(reports.since),
        "track": reports.track or "",
    }
    return View("admin/withdrawal.html", values)


def _since(text: str | None, now: int) -> int | None:
    try:
        return None if text is None else parse_time_or_age(text, now)
    except ValueError:
        raise Invalid({"since": NO_TIME}) from None
