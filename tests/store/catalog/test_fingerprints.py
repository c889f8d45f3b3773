"""The fingerprint status follows the allowed transitions only."""

import pytest

from musicsvc.errors import Conflict, NotFound
from musicsvc.store.catalog import tracks
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track

ALLOWED = {("pending", "processing"), ("processing", "completed"), ("processing", "failed"), ("failed", "pending")}


def make_track(status: str) -> int:
    made: Track = Track.create(name="x", duration=1, fingerprint_status=status, created_at=1)
    return made.id


@pytest.mark.parametrize("present", tracks.FINGERPRINT_TRANSITIONS)
@pytest.mark.parametrize("wanted", tracks.FINGERPRINT_TRANSITIONS)
def test_a_fingerprint_makes_the_moves_of_its_path_alone(store: Store, present: str, wanted: str) -> None:
    track_id = store.write(lambda: make_track(present)).result()
    error = store.write(lambda: tracks.set_fingerprint_status(track_id, wanted)).exception()
    assert (error is None) == ((present, wanted) in ALLOWED)
    assert error is None or (isinstance(error, Conflict) and present in error.message)
    after = store.read(lambda: Track.get_by_id(track_id).fingerprint_status).result()
    assert after == (wanted if error is None else present)


def test_an_unknown_track_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.write(lambda: tracks.set_fingerprint_status(1, "processing")).result()
