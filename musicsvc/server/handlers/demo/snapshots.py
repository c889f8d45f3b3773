"""Snapshots of the demo: its data and its time (in demo mode only)."""

import re

from musicsvc.clock import isoformat
from musicsvc.errors import Invalid
from musicsvc.server.demo.snapshots import Snapshot
from musicsvc.server.demo.state import DemoState
from musicsvc.server.shapes.envelope import JSON, ok

NAME = re.compile("[A-Za-z0-9._-]{1,64}")


def index(demo: DemoState) -> JSON:
    """List the snapshots, oldest first."""
    return ok(snapshots=[_shape(snapshot) for snapshot in demo.snapshots.list()])


def create(name: str, demo: DemoState) -> JSON:
    """Save the data and the time of the demo, in place of an earlier snapshot of this name.

    Raises Invalid for a name with other characters.
    """
    if not NAME.fullmatch(name):
        raise Invalid({"name": "Must have 1 to 64 of the characters A-Z a-z 0-9 . _ -"})
    return ok(snapshot=_shape(demo.snapshots.save(name, demo.clock.now())))


def restore(name: str, demo: DemoState) -> JSON:
    """Go back to the data and the time of a snapshot. Connections stay open."""
    return ok(snapshot=_shape(demo.restore(name)))


def delete(name: str, demo: DemoState) -> JSON:
    """Delete a snapshot."""
    demo.snapshots.delete(name)
    return ok()


def _shape(snapshot: Snapshot) -> JSON:
    return {"name": snapshot.name, "now": isoformat(snapshot.now)}
