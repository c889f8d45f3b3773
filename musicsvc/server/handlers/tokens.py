"""Create, list and delete the caller's access tokens."""

from musicsvc.server.schemas.accounts import TokenIn
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes.envelope import JSON, ok, paged, picked
from musicsvc.store.accounts import sign_in, tokens
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.models import Token


def index(query: Pages, caller: Identity, now: int) -> JSON:
    """List the caller's access tokens, newest first, including expired and revoked ones."""
    return paged(tokens.list_own(query.to_page(), actor=caller), _listed, now)


def create(body: TokenIn, verified: Credentials | None, now: int) -> JSON:
    """Create an access token. The response has its value, which is not shown again."""
    user = sign_in.require(verified)
    token, value = tokens.create(user, body.name, days=body.days, scope=body.scope, now=now, actor="api")
    return ok(access_token=picked(token, "id", "name", "expires_at"), plain_text_token=value)


def delete(subject: Token, now: int) -> JSON:
    """Delete an access token: it is revoked, and stays in the list. Safe to repeat."""
    tokens.delete(subject, now=now, actor="api")
    return ok()


def _listed(token: Token, now: int) -> JSON:
    listed = picked(token, "id", "name", "last_four", "scope") | {"state": tokens.state(token, now)}
    return listed | picked(token, "created_at", "expires_at", "last_used_at")
