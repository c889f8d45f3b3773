"""Create an account, and set its password by a one-time link."""

from musicsvc.config import Settings
from musicsvc.errors import Invalid
from musicsvc.server.handlers.pages.sign_in import landing
from musicsvc.server.schemas.pages.accounts import NewPasswordForm, RegisterForm
from musicsvc.server.shapes.pages import FormState, Redirect, SignedIn, View
from musicsvc.server.visits import Visit
from musicsvc.store.accounts import password_links, passwords, users
from musicsvc.store.models import User
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity


def show_registration(caller: SessionIdentity | None, form: FormState) -> View | Redirect:
    """Show the form to create an account."""
    return Redirect("/") if caller is not None and form.action is None else View("register.html")


def hash_password(body: RegisterForm) -> str:
    """Hash the password before the transaction starts, because hashing is slow."""
    return passwords.hash_password(body.password)


def register(
    body: RegisterForm, prepared: str, settings: Settings, caller: SessionIdentity | None, visit: Visit, now: int
) -> SignedIn:
    """Create an account and sign in. Ends the session that the browser had."""
    granted = settings.registration.grants_access
    user = users.create(body.email, password_hash=prepared, api_access=granted, now=now, actor="page")
    session = sessions.create(user, address=visit.address, agent=visit.agent, now=now, instead_of=caller)
    return SignedIn("/", f"Welcome, {user.display_name}. Your account is ready.", session)


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
    visit: Visit,
    now: int,
) -> SignedIn:
    """Set the password, end the link, all other sessions and that of the browser, and sign in."""
    if problem := passwords.check(body.new_password, email=subject.email, hosted=settings.hosted):
        raise Invalid({"new_password": problem})
    password_links.use(link, prepared, now=now)
    session = sessions.create(subject, address=visit.address, agent=visit.agent, now=now, instead_of=caller)
    return SignedIn(landing(subject.id, admin=subject.admin), "Your password is set, and you are signed in.", session)
