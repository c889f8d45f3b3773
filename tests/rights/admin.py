"""The expected rights for the pages of administration, in the form of tests/rights/pages.py."""

from collections.abc import Callable, Mapping
from typing import Any

from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.models import Track
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.rights.page_right import OWNER, PageRight, PageWorld

REASON = {"reason": "See the terms."}


def _account(world: PageWorld) -> Mapping[str, Any]:
    return {"id": world.ids[OWNER]}


def _reporting(world: PageWorld) -> Mapping[str, Any]:
    """Store a play that the owner reported."""
    (listener,) = listeners.ensure([listeners.opaque_key("fan")]).values()
    track = Track.create(name="Air", duration=1000, created_at=3).id
    row = ingest.PlayRow(world.ids[OWNER], track, listener, b"", world.ids[OWNER] * SLOT, None, world.ids[OWNER])
    ingest.record([row])
    return _account(world)


def _request(world: PageWorld) -> Mapping[str, Any]:
    now = world.shared.clock.now()
    email = f"asks@{world.domain}"
    return {"id": api_access.request(email, "A player", "100 a day", "Engines Ltd", now=now).id}


def _token(world: PageWorld) -> Mapping[str, Any]:
    now = world.shared.clock.now()
    token, _ = tokens.create(users.get(world.ids[OWNER]), "laptop", now=now)
    return {"id": token.id}


def _act(
    make: Callable[[PageWorld], Mapping[str, Any]], form: Mapping[str, str] | None = None, **more: Any
) -> PageRight:
    return PageRight(make, form=lambda _: form or {}, **more)


PAGES: Mapping[str, PageRight] = {
    "GET /admin": PageRight(query="?show=decided"),
    "GET /admin/requests/{id}": PageRight(_request),
    "POST /admin/requests/{id}/approve": _act(_request, status=200),  # it shows the link of a new account
    "POST /admin/requests/{id}/deny": _act(_request, REASON),
    "GET /admin/accounts": PageRight(query="?q=a"),
    "POST /admin/accounts": PageRight(form=lambda world: {"email": f"new@{world.domain}"}, status=200),
    "GET /admin/accounts/{id}": PageRight(_account),
    "POST /admin/accounts/{id}/password-link": _act(_account, status=200),
    "POST /admin/accounts/{id}/suspend": _act(_account, REASON),
    "POST /admin/accounts/{id}/reinstate": _act(_account),
    "POST /admin/accounts/{id}/grant-access": _act(_account),
    "POST /admin/accounts/{id}/revoke-access": _act(_account),
    "POST /admin/accounts/{id}/withdraw-plays": _act(_reporting, status=200),  # it shows the plays
    "GET /admin/tokens": PageRight(query="?q=a"),
    "GET /admin/tokens/{id}": PageRight(_token),
    "POST /admin/tokens/{id}/revoke": _act(_token, REASON),
    "POST /admin/tokens/{id}/reinstate": _act(_token),
    "GET /admin/abuse": PageRight(),
    "GET /admin/abuse/{id}": PageRight(_token),
    "GET /admin/activity": PageRight(query="?status=4xx"),
    "GET /admin/health": PageRight(),
}
