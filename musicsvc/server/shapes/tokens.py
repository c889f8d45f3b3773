"""Build the JSON of access tokens, which never contains their values."""

from musicsvc.clock import isoformat
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.accounts import tokens
from musicsvc.store.models import Token


def created(token: Token) -> JSON:
    return {"id": token.id, "name": token.name, "expires_at": isoformat(token.expires_at)}


def listed(token: Token, now: int) -> JSON:
    return {
        "id": token.id,
        "name": token.name,
        "last_four": token.last_four,
        "scope": token.scope,
        "state": tokens.state(token, now),
        "created_at": isoformat(token.created_at),
        "expires_at": isoformat(token.expires_at),
        "last_used_at": None if token.last_used_at is None else isoformat(token.last_used_at),
    }
