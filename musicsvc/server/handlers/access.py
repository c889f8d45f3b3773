"""Request API access, and show the decision."""

from musicsvc.server.schemas.accounts import AccessIn
from musicsvc.server.shapes.envelope import JSON, ok, picked
from musicsvc.store.accounts import api_access
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.models import AccessRequest


def request(body: AccessIn, caller: Identity, now: int) -> JSON:
    """Request API access. An account may ask again 24 hours after a request was denied."""
    texts = body.use_case, body.volume, body.organization
    return _shape(api_access.request_own(caller.user_id, *texts, now=now, actor="api"))


def show(caller: Identity) -> JSON:
    """Get the caller's newest request for API access, with its state."""
    return _shape(api_access.latest_own_request(actor=caller))


def _shape(asked: AccessRequest) -> JSON:
    return ok(access_request=picked(asked, "id", "state", "created_at", "reason"))
