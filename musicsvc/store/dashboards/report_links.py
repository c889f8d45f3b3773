"""Share links, which show the figures of a track, album or artist on fixed days to anybody, until the link expires.

A link works as long as the account that created it may read these figures. The link contains a signed id.
"""

from collections.abc import Sequence
from typing import NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Forbidden, Invalid, NotFound
from musicsvc.store.engine.sql import fetch, lock_rows
from musicsvc.store.insights import figures
from musicsvc.store.models import ReportLink, User
from musicsvc.store.plays import history
from musicsvc.store.plays.periods import CUSTOM, Window, between, to_date
from musicsvc.store.plays.subjects import Subject
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.store.security.sessions import SessionIdentity

LIFETIME = 30 * DAY
MOST = 100  # links of an account that have not expired
MOST_DAYS = 3_660  # of a shared report
GONE = "This link does not work. It may have expired, or its owner has ended it. Ask the person who sent it."
OPEN = """
    SELECT l.kind, l.subject, l.first_day, l.end_day, l.user_id, l.expires_at, a.display_name
    FROM report_link l JOIN account a ON a.id = l.user_id
    WHERE l.id = ? AND l.created_at = ? AND l.expires_at > ? AND a.suspended_at IS NULL
"""


class SharedReport(NamedTuple):
    """The report that a link shares: the track, album or artist, the days, and the time when the link expires.

    `owner`: the display name of the account that created the link.
    `earlier_first`: the first day that the link was made for, if that is too long ago to be shown.
    """

    subject: Subject
    window: Window
    expires_at: int
    owner: str
    earlier_first: int | None = None


class LinkRow(NamedTuple):
    """A link in its owner's list. `name`: the name of the track, album or artist, or None if it was deleted."""

    id: int
    subject: Subject
    name: str | None
    window: Window
    created_at: int
    expires_at: int


def create(
    subject: Subject, window: Window, *, user_id: int, now: int, lifetime: int = LIFETIME, actor: Actor = "page"
) -> LinkRow:
    """Create a link to the figures of a track, album or artist, which the account must manage, in the window.

    Raises Invalid if the window is too long, Conflict if the account has too many links.
    """
    if window.days > MOST_DAYS:
        raise Invalid({"period": f"A shared report has at most {MOST_DAYS:,} days. Choose a shorter period first."})
    lock_rows(User.select(User.id).where(User.id == user_id)).first()
    ReportLink.delete().where(ReportLink.user == user_id, ReportLink.expires_at <= now).execute()
    if ReportLink.select().where(ReportLink.user == user_id).count() >= MOST:
        raise Conflict(f"You have {MOST} share links, the most that an account can have. End one first.")
    link: ReportLink = ReportLink.create(
        user=user_id,
        kind=subject.kind,
        subject=subject.id,
        first_day=window.first,
        end_day=window.end,
        created_at=now,
        expires_at=now + lifetime,
    )
    security_events.add("report.shared", account_id=user_id, reason=_about(link.id, subject), now=now, actor=actor)
    return _row(link)


def open(link_id: int, created_at: int, *, now: int) -> SharedReport:  # noqa: A001 - the module is the namespace
    """Return the report of a link. Raises NotFound if the link has ended or its owner may not read the report."""
    for kind, subject_id, first, end, user_id, expires_at, owner in fetch(OPEN, link_id, created_at, now):
        subject = Subject(kind, subject_id)
        try:
            figures.check_manager(subject, user_id)
        except (Forbidden, NotFound):
            break
        shown = max(first, end - MOST_DAYS)  # links of earlier versions can have more days
        return SharedReport(subject, _between(shown, end, now), expires_at, owner, first if first < shown else None)
    raise NotFound(GONE)


def list(user_id: int, *, now: int) -> Sequence[LinkRow]:  # noqa: A001 - the module is the namespace
    """Return the account's links that have not expired, newest first."""
    found = ReportLink.select().where(ReportLink.user == user_id, ReportLink.expires_at > now)
    return [_row(link) for link in found.order_by(ReportLink.id.desc())]


def _row(link: ReportLink) -> LinkRow:
    subject = Subject(link.kind, link.subject)
    try:
        name = figures.name(subject)
    except NotFound:
        name = None
    return LinkRow(
        link.id, subject, name, Window(CUSTOM, link.first_day, link.end_day), link.created_at, link.expires_at
    )


def get_own(link_id: int, *, actor: SessionIdentity) -> ReportLink:
    """Return a link of the account. Raises NotFound if the account has no such link."""
    found: ReportLink | None = ReportLink.get_or_none(ReportLink.id == link_id, ReportLink.user == actor.user_id)
    if found is None:
        raise NotFound("There is no such share link.")
    return found


def end(link: ReportLink, *, user_id: int, now: int, actor: Actor = "page") -> None:
    """Delete the link, so that it no longer works."""
    ReportLink.delete().where(ReportLink.id == link.id).execute()
    about = _about(link.id, Subject(link.kind, link.subject))
    security_events.add("report.unshared", account_id=user_id, reason=about, now=now, actor=actor)


def _between(first: int, end: int, now: int) -> Window:
    return history.adapt(between(to_date(first), to_date(end - 1), now))


def _about(link_id: int, subject: Subject) -> str:
    return f"link {link_id} to {figures.noun(subject)} {subject.id}"
