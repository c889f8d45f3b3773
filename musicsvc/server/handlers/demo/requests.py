"""The journal of the demo: its last requests to the API (in demo mode only)."""

from typing import Any

import orjson

from musicsvc.config import Settings
from musicsvc.server.demo.journal import CUT, Entry, Journal, SentToken
from musicsvc.server.schemas.demo import RequestsQuery
from musicsvc.server.shapes.envelope import JSON, Site, ok, picked


def index(query: RequestsQuery, journal: Journal, site: Site, settings: Settings) -> JSON:
    """List the last 1,000 requests to the API, newest first, without secrets."""
    origin = site.root.removesuffix(settings.server.base_path)
    return ok(requests=[_shape(entry, origin) for entry in journal.list(query.since)])


def clear(journal: Journal) -> JSON:
    """Delete all recorded requests. Numbers go on."""
    journal.clear()
    return ok()


def _shape(entry: Entry, origin: str) -> JSON:
    token, injection = entry.token, entry.injection
    return {
        **picked(entry, "number", "at"),
        "seconds": round(entry.ended - entry.began, 6),
        **picked(entry, "method", "target", "route", "status", "ended_by"),
        "fault": injection and {"fault": injection.notation, "source": injection.source},
        "request_id": entry.request_id,
        "account": None if token is None or token.id is None else {"id": token.account_id, "name": token.account_name},
        "token": token and _token(token),
        "headers": entry.headers,
        "body": _body(entry),
        "body_bytes": entry.size,
        **picked(entry, "response_headers", "message", "errors"),
        "curl": entry.curl(origin),
    }


def _token(token: SentToken) -> JSON:
    known = picked(token, "id", "name", "last_four", "scope")
    return known | {"valid": token.refusal is None, "refusal": token.refusal}


def _body(entry: Entry) -> Any:
    """Return the JSON value of the body; what is cut, and what is no JSON, as text."""
    if entry.body is None:
        return None
    if entry.is_json:
        return orjson.Fragment(entry.body)
    return entry.body.decode() + (CUT if entry.is_cut else "")
