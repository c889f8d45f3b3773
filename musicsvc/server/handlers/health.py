"""Health checks, without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.errors import Unavailable
from musicsvc.store.schema import schema

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON


def alive() -> JSON:
    """Check that the process answers."""
    return {"status": "ok"}


def ready() -> JSON:
    """Check that the database is available and has the current schema."""
    if problem := schema.fault():
        raise Unavailable(here=problem)
    return {"status": "ok"}
