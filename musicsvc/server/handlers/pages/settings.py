"""The settings of the signed-in account: display name, password, sessions, offers of artists, and its data."""

import re
from pathlib import Path

from musicsvc.config import Settings
from musicsvc.errors import Invalid
from musicsvc.server.schemas.pages.accounts import ChangePasswordForm, DisplayNameForm, PasswordForm
from musicsvc.server.schemas.pages.admin import OlderQuery
from musicsvc.server.shapes import pages, personal_data, share_links
from musicsvc.server.shapes.envelope import Site, as_file
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.server.shapes.spooled import Spooled, spool
from musicsvc.store.accounts import passwords, users
from musicsvc.store.accounts import sign_in as credentials
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.activity.log import Log
from musicsvc.store.dashboards import report_links
from musicsvc.store.editing import offers
from musicsvc.store.models import Session
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity

# The first match counts: most browsers also name others.
BROWSERS = (
    (r"Edg(e|A|iOS)?/", "Edge"),
    (r"OPR/|Opera", "Opera"),
    (r"SamsungBrowser/", "Samsung Internet"),
    (r"Firefox/|FxiOS/", "Firefox"),
    (r"Chrom(e|ium)/|CriOS/", "Chrome"),
    (r"Safari/", "Safari"),
    (r"curl/", "curl"),
)
SYSTEMS = (
    (r"Android", "Android"),
    (r"iPhone|iPad", "iOS"),
    (r"Windows", "Windows"),
    (r"CrOS", "ChromeOS"),
    (r"Mac OS X|Macintosh", "macOS"),
    (r"Linux|X11", "Linux"),
)
PATH = "/settings"


def show(query: OlderQuery, caller: SessionIdentity, site: Site, now: int) -> View:
    """Show the settings of the account."""
    found = sessions.list(caller.user_id, now=now, limit=pages.WANTED, before=query.before)
    shown = pages.newest_by_id([(session, describe(session.agent)) for session in found], lambda row: row[0].id)
    links = [share_links.link(row, site) for row in report_links.list(caller.user_id, now=now)]
    told = {"sent": offers.sent(caller.user_id, now=now), "received": offers.received(caller.user_id, now=now)}
    return View("settings.html", told | {"sessions": shown, "share_links": links})


def rename(body: DisplayNameForm, caller: SessionIdentity) -> Redirect:
    """Change the display name."""
    users.set_display_name(users.get(caller.user_id), body.display_name)
    return Redirect(PATH, "Your display name is changed.")


def change_password(
    body: ChangePasswordForm,
    verified: Credentials | None,
    prepared: str,
    caller: SessionIdentity,
    settings: Settings,
    now: int,
) -> Redirect:
    """Change the password, and sign out all other browsers. Raises Invalid for a new password that is too weak."""
    user = credentials.require(verified)
    if problem := passwords.check(body.new_password, email=user.email, hosted=settings.hosted):
        raise Invalid({"new_password": problem})
    users.set_password(user, prepared, now=now, actor="page", session_id=caller.session_id)
    return Redirect(PATH, "Your password is changed. All other browsers are signed out.")


def end_session(subject: Session) -> Redirect:
    """Sign out another browser."""
    sessions.end(subject.id)
    return Redirect(PATH, "That browser is signed out.")


def end_other_sessions(caller: SessionIdentity) -> Redirect:
    """Sign out all other browsers."""
    sessions.end_all(caller.user_id, but=caller.session_id)
    return Redirect(PATH, "All other browsers are signed out.")


def show_data() -> View:
    """Show the form to download one's own data."""
    return View("own_data.html")


def download(
    body: PasswordForm,  # noqa: ARG001 - checked as `verified`
    verified: Credentials | None,
    caller: SessionIdentity,
    activity_log: Log,
    temporary: Path,
    now: int,
) -> Spooled:
    """Write all data of the account to a file. Raises Invalid if its password is wrong."""
    if verified is None or credentials.by_id(caller.user_id) != verified:
        raise Invalid(credentials.WRONG_PASSWORD)
    log = activity_log if activity_log.open_existing() else None
    pieces = personal_data.pieces(users.get(caller.user_id), log, now)
    return spool(pieces, temporary, "application/json", as_file(f"account-{caller.user_id}.json"))


def describe(agent: str) -> str:
    """Return browser and system of a User-Agent header, such as `Firefox on Linux`."""
    browser, system = (_first(agent, known) for known in (BROWSERS, SYSTEMS))
    return f"{browser or 'A browser'} on {system}" if system else browser or "An unknown browser"


def _first(agent: str, known: tuple[tuple[str, str], ...]) -> str | None:
    return next((name for pattern, name in known if re.search(pattern, agent)), None)
