"""Sign in and sign out."""

from musicsvc.config import Settings
from musicsvc.errors import Invalid
from musicsvc.server.schemas.pages.accounts import SignInQuery
from musicsvc.server.shapes.pages import FormState, Redirect, SignedIn, SignedOut, View
from musicsvc.server.visits import Visit
from musicsvc.store.accounts import api_access
from musicsvc.store.accounts import sign_in as credentials
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.catalog import artists
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity


def show(query: SignInQuery, caller: SessionIdentity | None, form: FormState, settings: Settings) -> View | Redirect:
    """Show the form to sign in."""
    if caller is not None and form.action is None:
        return Redirect(query.next or landing(caller.user_id, admin=caller.admin))
    contact = settings.access.contact_email
    return View("sign_in.html", {"next": query.next, "registration": settings.registration.open, "contact": contact})


def sign_in(
    verified: Credentials | None, query: SignInQuery, caller: SessionIdentity | None, visit: Visit, now: int
) -> SignedIn:
    """Sign in, and redirect to the page that the browser requested before."""
    user = credentials.still_valid(verified)
    if user is None:
        raise Invalid({"email": credentials.WRONG})
    session = sessions.create(user, address=visit.address, agent=visit.agent, now=now, instead_of=caller)
    return SignedIn(query.next or landing(user.id, admin=user.admin), session=session)


def landing(user_id: int, *, admin: bool) -> str:
    """Return the path of the first page after sign-in, which depends on what the account has to do."""
    if admin and api_access.requests(pending=True, limit=1):
        return "/admin"
    return "/insights" if artists.manages_any(user_id) else "/"


def sign_out(caller: SessionIdentity | None) -> SignedOut:
    """End the session of this browser."""
    if caller is not None:
        sessions.end(caller.session_id)
    return SignedOut("/", "You are signed out.")
