"""Set the fingerprint status of tracks. Operators do that by hand, because the service has no audio files."""

from musicsvc.errors import Conflict, NotFound
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.models import Track

TRANSITIONS: dict[str, tuple[str, ...]] = {
    "pending": ("processing",),
    "processing": ("completed", "failed"),
    "completed": (),
    "failed": ("pending",),
}


def set_status(track_id: int, wanted: str) -> None:
    """Change the fingerprint status of a track to `wanted`. Raises NotFound, or Conflict if TRANSITIONS forbids it."""
    row = lock_rows(Track.select(Track.fingerprint_status).where(Track.id == track_id)).tuples().first()
    if row is None:
        raise NotFound(f"There is no track {track_id}.")
    present: str = row[0]
    if wanted not in TRANSITIONS[present]:
        following = " or ".join(TRANSITIONS[present])
        change = f"can only become {following}" if following else "cannot change any more"
        raise Conflict(f"The fingerprint of track {track_id} is {present}; it {change}.")
    Track.update(fingerprint_status=wanted).where(Track.id == track_id).execute()
