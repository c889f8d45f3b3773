"""Share links, which show figures to anybody, on fixed days or in a period that moves along, until the link expires.

A link shows a track, album or artist, or compares several of one kind. Each is shown as long as the account that
created the link may read its figures; a link that shows nothing any more does not work. It contains a signed id.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Forbidden, Invalid, NotFound, existing
from musicsvc.store.engine.sql import compiled, lock_row
from musicsvc.store.insights import belonging, export_rows, figures
from musicsvc.store.models import ReportLink, ReportLinkSubject, User
from musicsvc.store.plays import history, periods
from musicsvc.store.plays.periods import CUSTOM, Window, between, to_date
from musicsvc.store.plays.subjects import Subject
from musicsvc.store.security import security_events
from musicsvc.store.security.sessions import SessionIdentity

LIFETIME = 30 * DAY
MOST = 100  # links of an account that have not expired
MOST_DAYS = 3_660  # of a shared report
# Periods that move along, as pages name them.
MOVING = {
    "7-days": "the last 7 days",
    "30-days": "the last 30 days",
    "90-days": "the last 90 days",
    "1-year": "the last year",
    "this-month": "this month",
    "last-month": "last month",
}
GONE = "This link does not work. It may have expired, or its owner has ended it. Ask the person who sent it."
NOT_FOR_PROGRAMS = "This link is for people only: its owner lets no program read it. Ask the person who sent it."


class SharedReport(NamedTuple):
    """The report that a link shares: its subjects, the days, and the time when the link expires.

    `subjects`: the tracks, albums or artists that its owner may read; at least one. `compared`: whether the link was
    made for several. `owner`: the display name of the account that created the link.
    `earlier_first`: the first day that the link was made for, if that is too long ago to be shown.
    `moving`: one of MOVING, or None if the days are fixed.
    """

    subjects: tuple[Subject, ...]
    compared: bool
    window: Window
    expires_at: int
    owner: str
    earlier_first: int | None = None
    moving: str | None = None


class LinkRow(NamedTuple):
    """A link in its owner's list. `names`: those of its subjects, or None for one that the owner does not manage now.

    `moving`: one of MOVING, or None if the days are fixed. `programs`: whether programs may read it, too.
    """

    id: int
    subjects: tuple[Subject, ...]
    names: tuple[str | None, ...]
    window: Window
    created_at: int
    expires_at: int
    moving: str | None = None
    programs: bool = False


def create(
    subjects: Sequence[Subject],
    window: Window | str,
    *,
    user_id: int,
    now: int,
    programs: bool = False,
    lifetime: int = LIFETIME,
) -> LinkRow:
    """Create a link to the figures of tracks, albums or artists in the window. The account must manage all of them.

    `subjects`: at least one, all of one kind. `window`: fixed days, or one of MOVING. Raises Invalid if the window is
    too long, Conflict if the account has too many links.
    """
    moving, window = (window, periods.window(window, now)) if isinstance(window, str) else (None, window)
    if window.days > MOST_DAYS:
        raise Invalid({"period": f"A shared report has at most {MOST_DAYS:,} days. Choose a shorter period first."})
    lock_row(User, user_id)
    ReportLink.delete().where(ReportLink.user == user_id, ReportLink.expires_at <= now).execute()
    if ReportLink.select().where(ReportLink.user == user_id).count() >= MOST:
        raise Conflict(f"You have {MOST} share links, the most that an account can have. End one first.")
    link: ReportLink = ReportLink.create(
        user=user_id,
        kind=subjects[0].kind,
        first_day=window.first,
        end_day=window.end,
        created_at=now,
        expires_at=now + lifetime,
        period=moving,
        programs=programs,
    )
    ReportLinkSubject.insert_many(
        {"report_link": link.id, "position": place, "subject": each.id} for place, each in enumerate(subjects)
    ).execute()
    security_events.add("report.shared", account_id=user_id, reason=_about(link.id, subjects), now=now, actor="page")
    (row,) = _rows([link], user_id)
    return row


def open(  # noqa: A001 - the module is the namespace
    link_id: int, created_at: int, *, now: int, program: bool = False
) -> SharedReport:
    """Return the report of a link. Raises NotFound if the link has ended or its owner may not read the report.

    `program`: it is for a program, which its owner must have allowed.
    """
    for kind, first, end, moving, programs, user_id, expires_at, owner in _open(link_id, created_at, now):
        all_subjects = _subjects([link_id], kind)[link_id]
        subjects = tuple(each for each in dict.fromkeys(all_subjects) if _may_read(each, user_id))
        if not subjects:
            break
        if program and not programs:
            raise NotFound(NOT_FOR_PROGRAMS)
        if moving is not None:
            days = history.adapt(periods.window(moving, now))
            return SharedReport(subjects, len(all_subjects) > 1, days, expires_at, owner, moving=moving)
        shown = max(first, end - MOST_DAYS)  # links of earlier versions can have more days
        earlier = first if first < shown else None
        latest = max(now, (end - 1) * DAY)  # the clock may have gone back since
        days = history.adapt(between(to_date(shown), to_date(end - 1), latest))
        return SharedReport(subjects, len(all_subjects) > 1, days, expires_at, owner, earlier)
    raise NotFound(GONE)


@compiled
def _open(link_id: int, created_at: int, now: int) -> Any:
    """Select the link if it has not ended and its owner is not suspended."""
    row = ReportLink
    of_link = row.kind, row.first_day, row.end_day, row.period, row.programs, row.user, row.expires_at
    query = row.select(*of_link, User.display_name).join(User)
    valid = row.id == link_id, row.created_at == created_at, row.expires_at > now
    return query.where(*valid, User.suspended_at.is_null())


def _may_read(subject: Subject, user_id: int) -> bool:
    try:
        figures.check_manager(subject, user_id)
    except (Forbidden, NotFound):
        return False
    return True


def list(user_id: int, *, now: int) -> Sequence[LinkRow]:  # noqa: A001 - the module is the namespace
    """Return the account's links that have not expired, newest first."""
    found = ReportLink.select().where(ReportLink.user == user_id, ReportLink.expires_at > now)
    return _rows([*found.order_by(ReportLink.id.desc())], user_id)


def _rows(links: Sequence[ReportLink], user_id: int) -> Sequence[LinkRow]:
    """Return the links of an account with the names of their subjects, read with one query for each kind."""
    found: dict[int, tuple[Subject, ...]] = {}
    names: dict[Subject, str] = {}
    for kind in {link.kind for link in links}:
        of_kind = _subjects([link.id for link in links if link.kind == kind], kind)
        found |= {link: tuple(dict.fromkeys(some)) for link, some in of_kind.items()}
        ids = {each.id for some in of_kind.values() for each in some}
        managed = sorted(each for (each,) in belonging.managed(ids, user_id, kind=kind))
        names |= {Subject(kind, each): name for each, name in export_rows.names(kind, managed).items()}
    return [
        LinkRow(
            link.id,
            found[link.id],
            tuple(names.get(each) for each in found[link.id]),
            Window(CUSTOM, link.first_day, link.end_day),
            link.created_at,
            link.expires_at,
            link.period,
            link.programs,
        )
        for link in links
    ]


def _subjects(links: Sequence[int], kind: int) -> dict[int, tuple[Subject, ...]]:
    """Return the subjects of links to this kind, by the link's id; after a merge, one can be there twice."""
    found: dict[int, tuple[Subject, ...]] = defaultdict(tuple)
    for link, subject in _links(links):
        found[link] += (Subject(kind, subject),)
    return found


@compiled
def _links(ids: Sequence[int]) -> Any:
    row = ReportLinkSubject
    return row.select(row.report_link, row.subject).where(row.report_link.in_(ids)).order_by(row.position)


def get_own(link_id: int, *, actor: SessionIdentity) -> ReportLink:
    """Return a link of the account. Raises NotFound if the account has no such link."""
    own = ReportLink.get_or_none(ReportLink.id == link_id, ReportLink.user == actor.user_id)
    found: ReportLink = existing(own, "This share link has ended already, or is not yours.")
    return found


def end(link: ReportLink, *, user_id: int, now: int) -> None:
    """Delete the link, so that it no longer works."""
    about = _about(link.id, _subjects([link.id], link.kind)[link.id])
    ReportLink.delete().where(ReportLink.id == link.id).execute()
    security_events.add("report.unshared", account_id=user_id, reason=about, now=now, actor="page")


def _about(link_id: int, subjects: Sequence[Subject]) -> str:
    noun, numbers = figures.noun(subjects[0]), ", ".join(str(each.id) for each in subjects)
    return f"link {link_id} to {noun} {numbers}"
