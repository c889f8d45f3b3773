"""Register accounts, and sign in to get an access token."""

from musicsvc.config import Settings
from musicsvc.errors import Forbidden
from musicsvc.server.schemas.accounts import LoginIn, RegisterIn
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok
from musicsvc.store.accounts import api_access, passwords, sign_in, tokens, users
from musicsvc.store.accounts.sign_in import Credentials


def registration_open(settings: Settings) -> None:
    """Raise Forbidden if registration is switched off."""
    if not settings.registration.open:
        raise Forbidden("Registration is closed.")


def hash_password(body: RegisterIn) -> str:
    """Hash the password before the transaction starts, because hashing is slow."""
    return passwords.hash_password(body.password)


def register(body: RegisterIn, prepared: str, settings: Settings, site: Site, now: int) -> JSON:
    """Register an account. If `token_name` is sent, the response has a token, which is not shown again."""
    granted = settings.registration.grants_access
    user = users.create(body.email, password_hash=prepared, api_access=granted, now=now, actor="api")
    shape = catalog.account(user, site)
    if body.token_name is not None:
        _, value = tokens.create(user, body.token_name, now=now, without_access=True, actor="api")
        shape["access_token"] = value
    return ok(user=shape)


def log_in(body: LoginIn, verified: Credentials | None, settings: Settings, site: Site, now: int) -> JSON:
    """Create an access token for the account with this e-mail and password. The token is not shown again.

    Raises NoAccess if the account has no API access.
    """
    user = sign_in.require(verified, {"email": sign_in.WRONG})
    if not user.api_access:
        raise api_access.NoAccess(settings.access.contact_email)
    _, value = tokens.create(user, body.token_name, now=now, actor="api")
    return ok(user={**catalog.account(user, site), "access_token": value})
