"""Whether the service lives and can work, without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.errors import Unavailable
from musicsvc.store.schema import schema

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON


def alive() -> JSON:
    """Tell that the process answers."""
    return {"status": "ok"}


def ready() -> JSON:
    """Tell that the database is there and of the right schema."""
    if problem := schema.fault():
        raise Unavailable(here=problem)
    return {"status": "ok"}
