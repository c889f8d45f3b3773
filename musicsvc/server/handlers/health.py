"""Whether the service lives and can work, without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.errors import Unavailable
from musicsvc.store import schema

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON


def alive() -> JSON:
    """Tell that the process answers."""
    return {"status": "ok"}


def ready() -> JSON:
    """Tell that the database answers and is of the right schema."""
    if schema.applied() != schema.known():
        raise Unavailable("The database is of another schema. Run: musicsvc db upgrade")
    return {"status": "ok"}
