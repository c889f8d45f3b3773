"""Sign in and out, create an account, and set its password by a one-time link."""

from musicsvc.config import Settings
from musicsvc.errors import Invalid
from musicsvc.server.browsers import Browser
from musicsvc.server.schemas.pages.accounts import NewPasswordForm, RegisterForm, SignInQuery
from musicsvc.server.shapes.pages import FormState, Redirect, SignedIn, SignedOut, View
from musicsvc.store.accounts import api_access, password_links, passwords, users
from musicsvc.store.accounts import sign_in as sign_ins
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.catalog import artists
from musicsvc.store.models import User
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity


def show_sign_in(
    query: SignInQuery, caller: SessionIdentity | None, form: FormState, settings: Settings
) -> View | Redirect:
    """Show the form to sign in."""
    if caller is not None and form.action is None:
        return Redirect(query.next or _landing(caller.user_id, admin=caller.admin))
    contact = settings.access.contact_email
    return View("sign_in.html", {"next": query.next, "registration": settings.registration.open, "contact": contact})


def sign_in(
    verified: Credentials | None, query: SignInQuery, caller: SessionIdentity | None, browser: Browser, now: int
) -> SignedIn:
    """Sign in, and redirect to the page that the browser requested before."""
    user = sign_ins.require(verified, {"email": sign_ins.WRONG})
    path = query.next or _landing(user.id, admin=user.admin)
    return SignedIn(path, session=_start(user, browser, caller, now))


def sign_out(caller: SessionIdentity | None) -> SignedOut:
    """End the session of this browser."""
    if caller is not None:
        sessions.end(caller.session_id)
    return SignedOut("/", "You are signed out.")


def show_registration(caller: SessionIdentity | None, form: FormState) -> View | Redirect:
    """Show the form to create an account."""
    return Redirect("/") if caller is not None and form.action is None else View("register.html")


def register(
    body: RegisterForm, prepared: str, settings: Settings, caller: SessionIdentity | None, browser: Browser, now: int
) -> SignedIn:
    """Create an account and sign in. Ends the session that the browser had."""
    granted, name = settings.registration.grants_access, body.display_name
    user = users.create(
        body.email, display_name=name, password_hash=prepared, api_access=granted, now=now, actor="page"
    )
    if body.purpose is not None:
        users.set_purpose(user.id, body.purpose)
    session = _start(user, browser, caller, now)
    return SignedIn("/", "Your account is ready.", session)


def show_password(subject: User) -> View:
    """Show the form to set a password by a one-time link."""
    return View("password.html", {"user": subject})


def hash_new_password(body: NewPasswordForm) -> str:
    """Hash the new password before the transaction starts, because hashing is slow."""
    return passwords.hash_password(body.new_password)


def set_password(
    subject: User,
    link: str,
    body: NewPasswordForm,
    prepared: str,
    settings: Settings,
    caller: SessionIdentity | None,
    browser: Browser,
    now: int,
) -> SignedIn:
    """Set the password, end the link, all other sessions and that of the browser, and sign in.

    Raises Invalid for a password that is too weak.
    """
    if problem := passwords.check(body.new_password, email=subject.email, hosted=settings.hosted):
        raise Invalid({"new_password": problem})
    password_links.use(link, prepared, now=now)
    session = _start(subject, browser, caller, now)
    return SignedIn(_landing(subject.id, admin=subject.admin), "Your password is set, and you are signed in.", session)


def _landing(user_id: int, *, admin: bool) -> str:
    """Return the path of the first page after sign-in, which depends on what the account has to do."""
    if admin and api_access.requests(pending=True, limit=1):
        return "/admin"
    return "/insights" if artists.manages_any(user_id) else "/"


def _start(user: User, browser: Browser, caller: SessionIdentity | None, now: int) -> str:
    """Start a session of the browser instead of the one that it had, and return its id."""
    return sessions.create(user, address=browser.address, agent=browser.agent, now=now, instead_of=caller)
