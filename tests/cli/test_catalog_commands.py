"""`musicsvc artist` and `musicsvc fingerprint`."""

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track
from tests.cli.conftest import Json, Run


def fill() -> None:
    Artist.create(name="Clara Schumann", created_at=1)
    Track.create(name="Trio", duration=1, created_at=1)
    users.create("ada@example.test", now=1)


def test_an_artist_is_assigned_and_verified(ask: Json, run: Run, store: Store) -> None:
    store.write(fill).result()
    assert ask("artist", "assign", "1", "ADA@example.test")["manager_id"] == 1
    assert ask("artist", "verify", "1")["verified"] is True
    assert ask("artist", "verify", "1", "--undo")["verified"] is False
    run("artist", "verify", "9", expect=1)
    run("artist", "assign", "1", "bob@example.test", expect=1)


def test_a_fingerprint_takes_only_the_next_status(ask: Json, run: Run, store: Store) -> None:
    store.write(fill).result()
    assert ask("fingerprint", "set", "1", "processing") == {"track_id": 1, "fingerprint_status": "processing"}
    refused = run("fingerprint", "set", "1", "pending", expect=1)
    assert (
        refused.stderr == "Error: The fingerprint of track 1 is processing; it can only become completed or failed.\n"
    )
    run("fingerprint", "set", "1", "nonsense", expect=2)
    run("fingerprint", "set", "9", "pending", expect=1)
