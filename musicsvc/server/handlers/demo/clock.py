"""The clock of the demo, which all of its parts follow (in demo mode only)."""

from musicsvc.clock import isoformat
from musicsvc.server.demo.state import DemoState
from musicsvc.server.schemas.demo import ClockIn
from musicsvc.server.shapes.envelope import JSON, ok


def show(demo: DemoState) -> JSON:
    """Get the time of the demo."""
    return ok(clock={"now": isoformat(demo.clock.now()), "speed": demo.clock.speed})


def move(body: ClockIn, demo: DemoState) -> JSON:
    """Move the clock of the demo forward, by a duration or to a time."""
    if body.advance is not None:
        demo.advance(body.advance)
    elif body.to is not None:
        demo.move_to(body.to)
    return show(demo)


def reset(demo: DemoState) -> JSON:
    """Go back to the data and the time of the start, and delete all faults and recorded requests. Snapshots stay."""
    demo.reset()
    return show(demo)
