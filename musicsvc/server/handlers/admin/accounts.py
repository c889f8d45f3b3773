"""Accounts: requests for API access, search, creation, password links, suspension, withdrawal of plays, deletion."""

from collections.abc import Sequence

from musicsvc.clock import DAY, parse_time_or_age
from musicsvc.config import Settings
from musicsvc.errors import Conflict, Invalid
from musicsvc.server.handlers.admin import callers
from musicsvc.server.schemas.pages.admin import (
    AccountForm,
    AssignForm,
    DeletionForm,
    EditAccountForm,
    ReasonForm,
    RequestsQuery,
    SearchQuery,
    WithdrawalForm,
)
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.accounts.password_links import NewLink
from musicsvc.store.activity.log import Log
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments, offers
from musicsvc.store.engine.pagination import Page
from musicsvc.store.models import AccessRequest, Token, User
from musicsvc.store.people import catalogs, deletion
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

HOME, PATH = "/admin", "/admin/accounts"
EVENTS = 20
FEW = Page(1, 1)  # for the number of artists
NAMED = Page(1, 10)  # artists named before a deletion
RECENT = 30 * DAY
MOST_COUNTED = 1_000_000  # plays
MOST_WITHDRAWN = 200_000  # with pages; the command withdraws any number
SHOWN_TRACKS = 20
NO_TIME = "Must be a time (2026-01-31T12:00:00Z) or an age (15m, 7d)."
SHOWN = "The account is created, and its link was shown already. If you have not copied it, create another one."
ITSELF = "This is the account itself. Name another one."


def list_requests(query: RequestsQuery, activity_log: Log, settings: Settings, now: int) -> View:
    """Show requests for API access, after who was near a limit or a rule against abuse in the last 24 hours."""
    pending = query.show == "pending"
    found = api_access.requests(pending=pending, limit=pages.WANTED, before=query.before)
    near = callers.near_limits(activity_log, settings, now) if pending and query.before is None else []
    values = {"list": pages.newest_by_id(found, lambda asked: asked.id), "pending": pending, "near": near}
    return View("admin/requests.html", values | {"leaving": offers.asked() if pending else ()})


def show_request(subject: AccessRequest) -> View:
    """Show a request for API access, with the forms to approve and to deny it."""
    return View("admin/request.html", {"request": subject})


def approve(subject: AccessRequest, caller: SessionIdentity, site: Site, now: int) -> View | Redirect:
    """Approve a request for API access, and show the account's tokens, which work at once."""
    _, user, link, revived = api_access.approve(subject.id, now=now, actor=Administrator(caller.user_id))
    return _granted(user, revived, HOME) if link is None else _link(user, link, site, created=True)


def deny(subject: AccessRequest, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Deny a request for API access, with a reason."""
    denied = api_access.deny(subject.id, body.reason, now=now, actor=Administrator(caller.user_id))
    return Redirect(HOME, f"The request by {denied.email} is denied.")


def search(query: SearchQuery) -> View:
    """Show accounts, and the form to create one."""
    found = users.list(limit=pages.WANTED, text=query.q, before=query.before)
    shown = pages.newest_by_id(found[::-1], lambda user: user.id)
    return View("admin/accounts.html", {"list": shown, "query": query}, part="results")


def create(body: AccountForm, caller: SessionIdentity, site: Site, now: int) -> View:
    """Create an account, and show a link to set its password."""
    actor = Administrator(caller.user_id)
    user = users.create(body.email, display_name=body.display_name, now=now, actor=actor)
    return _link(user, password_links.create(user, now=now, actor=actor), site, created=True)


def show(subject: User, now: int) -> View:
    """Show an account with its tokens and its last security events."""
    events = security_events.find(security_events.Filter(account_id=subject.id), limit=EVENTS)[::-1]
    actors = users.emails({event.actor_id for event in events if event.actor_id is not None})
    owned = [(token, tokens.state(token, now)) for token in tokens.list(subject, limit=pages.SHOWN)[::-1]]
    values = {"user": subject, "tokens": owned, "events": events, "emails": actors}
    reported = account_plays.count(Reports(subject.id, since=now - RECENT), MOST_COUNTED)
    values |= {"reported": reported, "most": MOST_COUNTED, "artists": artists.list_managed(subject.id, FEW)}
    return View("admin/account.html", values)


def create_link(subject: User, caller: SessionIdentity, site: Site, now: int) -> View:
    """Show a new link to set the account's password."""
    return _link(subject, password_links.create(subject, now=now, actor=Administrator(caller.user_id)), site)


def edit(subject: User, body: EditAccountForm, caller: SessionIdentity, now: int) -> Redirect:
    """Change the e-mail and the display name of an account. Raises Invalid for one that somebody else has changed."""
    changed, errors = {}, {}
    for name in ("email", "display_name"):
        text, was, now_is = getattr(body, name), getattr(body, f"was_{name}"), getattr(subject, name)
        if text not in {was, was and was.replace("\n", "")}:  # browsers drop line breaks of a field
            changed[name] = text
            if was not in {None, now_is} and text != now_is:
                errors[name] = f"Somebody else has changed this to {now_is}. Save again to replace it."
    if errors:
        raise Invalid(errors)
    users.edit(subject, **changed, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is changed.")


def suspend(subject: User, body: ReasonForm, caller: SessionIdentity, now: int) -> Redirect:
    """Suspend an account, with a reason."""
    if subject.suspended_at is not None and subject.suspended_reason != body.reason:
        return _back(subject, f"{subject.email} was suspended before. The earlier reason stays.")
    users.suspend(subject, reason=body.reason, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is suspended.")


def reinstate(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """End the suspension of an account."""
    users.reinstate(subject, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is no longer suspended.")


def grant(subject: User, caller: SessionIdentity, now: int) -> View | Redirect:
    """Grant API access to an account, and show its tokens, which work at once."""
    revived = api_access.grant(subject, now=now, actor=Administrator(caller.user_id))
    return _granted(subject, revived, f"{PATH}/{subject.id}")


def grant_plays(subject: User, caller: SessionIdentity, now: int) -> View | Redirect:
    """Grant API access with the right to report plays of other listeners."""
    revived = api_access.grant(subject, plays=True, now=now, actor=Administrator(caller.user_id))
    return _granted(subject, revived, f"{PATH}/{subject.id}", "API access, and may report plays of other listeners")


def make_admin(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """Make an account an administrator."""
    users.set_admin(subject, admin=True, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is an administrator.")


def end_admin(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """End the right of an administrator."""
    users.set_admin(subject, admin=False, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} is no longer an administrator.")


def assign_artists(subject: User, body: AssignForm, caller: SessionIdentity, now: int) -> Redirect:
    """Assign all artists of an account to another one. Raises Invalid if it is the same."""
    manager = users.by_email(body.email)
    if manager.id == subject.id:
        raise Invalid({"email": ITSELF})
    moved = assignments.assign_all(subject, manager, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{quantity(moved, 'artist')} moved to {manager.email}.")


def revoke(subject: User, caller: SessionIdentity, now: int) -> Redirect:
    """Revoke an account's API access, and its right to report others' plays."""
    also = ", and cannot report plays of others" if subject.reports_plays else ""
    api_access.revoke(subject, now=now, actor=Administrator(caller.user_id))
    return _back(subject, f"{subject.email} has no API access any more{also}.")


def withdraw_plays(subject: User, body: WithdrawalForm, caller: SessionIdentity, now: int) -> View | Redirect:
    """Show the plays that will be withdrawn or, once confirmed, withdraw them.

    They are those that the account reported through the API. Raises Conflict if there are none, or too many.
    """
    reports = Reports(subject.id, _since(body.since, now), body.track)
    if account_plays.count(reports, MOST_WITHDRAWN) == MOST_WITHDRAWN:
        command = f"musicsvc plays withdraw --user {subject.email}"
        raise Conflict(f"These are {MOST_WITHDRAWN:,} plays or more. Withdraw them on the server with: {command}")
    if body.confirmed:
        done, left = account_plays.withdraw_batch(reports, now=now, actor=Administrator(caller.user_id))
        more = f" {quantity(left, 'play')} remain: withdraw again." if left else ""
        return _back(subject, f"{quantity(done, 'play')} withdrawn.{more}")
    summary = account_plays.summarize(reports)
    if not summary.plays:
        raise Conflict("The account reported no such plays that can be withdrawn.")
    values = {
        "user": subject,
        "days": {name: to_date(summary.days[at]).isoformat() for name, at in (("start", 0), ("end", -1))},
        "plays": summary.plays,
        "tracks": summary.tracks[:SHOWN_TRACKS],
        "total": len(summary.tracks),
        "kept_from": to_date(summary.kept_from).isoformat() if summary.kept_from else None,
        "since": reports.since,
        "track": reports.track or "",
    }
    return View("admin/withdrawal.html", values)


def _since(text: str | None, now: int) -> int | None:
    try:
        return None if text is None else parse_time_or_age(text, now)
    except ValueError:
        raise Invalid({"since": NO_TIME}) from None


def show_deletion(subject: User) -> View:
    """Show what goes with an account, and the form to delete it."""
    managed = artists.list_managed(subject.id, NAMED)
    values = {"user": subject, "belongings": deletion.count_belongings(subject), "catalog": catalogs.count(subject.id)}
    return View("admin/deletion.html", values | {"artists": managed.rows, "total": managed.total})


def delete(subject: User, body: DeletionForm, caller: SessionIdentity, now: int) -> Redirect:
    """Delete an account; another one manages its artists from then on, or they are deleted, too.

    Raises Conflict for the caller's own account and for too many tracks, Invalid if it is to manage its artists itself.
    """
    if subject.id == caller.user_id:
        raise Conflict("This is your own account. Delete it in the settings.")
    manager = None if body.artists_to is None else users.by_email(body.artists_to)
    if manager is not None and manager.id == subject.id:
        raise Invalid({"artists_to": ITSELF})
    if manager is not None and body.with_artists:
        raise Invalid({"artists_to": "Name an account, or delete the artists, too: not both."})
    if body.with_artists and catalogs.count(subject.id).large:
        command = f"musicsvc user delete {subject.email} --with-artists"
        raise Conflict(
            f"These are more than {catalogs.MOST_TRACKS:,} tracks. Delete them on the server with: {command}"
        )
    actor = Administrator(caller.user_id)
    deletion.delete(subject.id, artists_to=manager, with_artists=body.with_artists, now=now, actor=actor)
    return Redirect(PATH, f"{subject.email} is deleted.")


def _granted(user: User, revived: Sequence[Token], path: str, right: str = "API access") -> View | Redirect:
    """Show the tokens that work because access was granted, or lead to the page at `path` if there are none."""
    done = Redirect(path, f"{user.email} has {right}.")
    if not revived:
        return done
    return View("admin/granted.html", {"user": user, "tokens": revived, "back": path}, again=done)


def _link(user: User, link: NewLink, site: Site, *, created: bool = False) -> View:
    values = {"user": user, "url": link.url(site.root), "expires_at": link.expires_at, "created": created}
    return View("admin/password_link.html", values, again=_back(user, SHOWN) if created else None)


def _back(user: User, notice: str) -> Redirect:
    return Redirect(f"{PATH}/{user.id}", notice)
