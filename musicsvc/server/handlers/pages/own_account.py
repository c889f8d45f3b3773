"""The data of the signed-in account: download it, and delete the account."""

from pathlib import Path

from musicsvc.config import Settings
from musicsvc.errors import Conflict, Invalid
from musicsvc.server.schemas.pages.accounts import PasswordForm
from musicsvc.server.shapes import personal_data
from musicsvc.server.shapes.pages import SignedOut, View
from musicsvc.server.shapes.spooled import Spooled, spool
from musicsvc.store.accounts import sign_in, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.activity.log import Log
from musicsvc.store.people import deletion
from musicsvc.store.security.sessions import SessionIdentity

WRONG = {"password": "This is not your current password."}


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
    """Write all data of the account to a file."""
    if verified is None or sign_in.by_id(caller.user_id) != verified:
        raise Invalid(WRONG)
    log = activity_log if activity_log.open_existing() else None
    headers = {"Content-Disposition": f'attachment; filename="account-{caller.user_id}.json"'}
    pieces = personal_data.pieces(users.get(caller.user_id), log, now)
    return spool(pieces, temporary, "application/json", headers)


def show_deletion(caller: SessionIdentity, settings: Settings) -> View:
    """Show what goes with the account, and the form to delete it, or why that is not possible."""
    user, obstacle = users.get(caller.user_id), None
    try:
        deletion.check(user, contact=settings.access.contact_email)
    except Conflict as conflict:
        obstacle = conflict.message
    return View("delete_account.html", {"belongings": deletion.count_belongings(user), "obstacle": obstacle})


def delete(verified: Credentials | None, caller: SessionIdentity, settings: Settings, now: int) -> SignedOut:
    """Delete the account."""
    if sign_in.still_valid(verified) is None:
        raise Invalid(WRONG)
    deletion.delete(caller.user_id, contact=settings.access.contact_email, now=now, actor="page")
    return SignedOut("/", "Your account is deleted.")
