"""Health checks, without a token."""

from musicsvc.errors import Unavailable
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.schema import schema


def alive() -> JSON:
    """Check that the process answers."""
    return {"status": "ok"}


def ready() -> JSON:
    """Check that the database is available and has the current schema."""
    if problem := schema.fault():
        raise Unavailable(here=problem)
    return {"status": "ok"}
