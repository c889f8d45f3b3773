"""Fingerprints of tracks: the service has no audio, so their status is told to it."""

from __future__ import annotations

from musicsvc.errors import Conflict, NotFound
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.models import Track

MOVES: dict[str, tuple[str, ...]] = {
    "pending": ("processing",),
    "processing": ("completed", "failed"),
    "completed": (),
    "failed": ("pending",),
}


def set_status(track_id: int, wanted: str) -> None:
    """Move the status on; NotFound for an unknown track, Conflict where it cannot move there from where it is."""
    row = lock_rows(Track.select(Track.fingerprint_status).where(Track.id == track_id)).tuples().first()
    if row is None:
        raise NotFound(f"There is no track {track_id}.")
    present: str = row[0]
    if wanted not in MOVES[present]:
        ways = " or ".join(MOVES[present]) or "nothing else"
        raise Conflict(f"The fingerprint of track {track_id} is {present}; it can become {ways}.")
    Track.update(fingerprint_status=wanted).where(Track.id == track_id).execute()
