"""Deletions, merges and lost credits by the command line are events for each account that manages the track."""

from functools import partial
from pathlib import Path

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.editing import notices
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, SecurityEvent, Track, TrackArtist
from tests.cli.conftest import Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database
ANN, BEN = 1, 2


@pytest.fixture(autouse=True)
def catalog(store: Store) -> None:
    """Create the artists Clara (1) of Ann and Louise (2) of Ben, and their tracks Air (1), Aria (2), Ayre (3)."""

    def make() -> None:
        for name, artist in (("ann", "Clara"), ("ben", "Louise")):
            user = users.create(f"{name}@label.test", now=1)
            Artist.create(name=artist, manager=user, created_at=1)
        for number, name in enumerate(("Air", "Aria", "Ayre"), 1):
            Track.create(name=name, duration=1, created_at=1)
            TrackArtist.insert_many([(number, 1, 0), (number, 2, 1)]).execute()

    store.write(make).result()


@pytest.mark.parametrize(
    ("command", "words", "concerned"),
    [
        (["track", "delete", "1", "--yes"], "deleted track 1 (Air)", (ANN, BEN)),
        (["track", "merge", "1", "2", "--yes"], "merged track 1 (Air) into track 2 (Aria)", (ANN, BEN)),
        (["track", "edit", "1", "--artists", "1"], "removed Louise from track 1 (Air)", (BEN,)),
        (["artist", "merge", "1", "2", "--yes"], "merged artist 1 (Clara) into artist 2 (Louise)", (ANN, BEN)),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_all_managers_see_what_the_operator_did(
    run: Run, store: Store, command: list[str], words: str, concerned: tuple[int, ...]
) -> None:
    run(*command)
    at = store.read(lambda: [event.at for event in SecurityEvent.select()]).result()[-1]
    for account in (ANN, BEN):
        found = store.read(partial(notices.latest, account, now=at)).result()
        seen = [(f"{each.verb} {each.about}", each.account_id) for each in found]
        assert seen == ([(words, None)] if account in concerned else [])


def test_an_import_that_replaces_a_credit_is_an_event_for_each_batch(run: Run, store: Store, tmp_path: Path) -> None:
    """Artists of an import are sought among those of its account, so Ann's file names another Louise than Ben's."""
    file = tmp_path / "songs.csv"
    rows = [f"{number},{name},Clara;Louise" for number, name in enumerate(("Air", "Aria", "Ayre"), 1)]
    file.write_text("\n".join(["external_id,track,artist", *rows]))

    def imported() -> None:
        for number in (1, 2, 3):
            Track.update(external_id=str(number), imported_for=ANN).where(Track.id == number).execute()

    def events() -> list[tuple[object, ...]]:
        chosen = SecurityEvent.account_id == BEN, SecurityEvent.kind == "track.uncredited"
        columns = SecurityEvent.actor, SecurityEvent.actor_id, SecurityEvent.reason
        return [*SecurityEvent.select(*columns).where(*chosen).tuples()]

    store.write(imported).result()
    run("import", "catalog", str(file), "--user", "ann@label.test", "--dry-run")
    assert store.read(events).result() == []
    run("import", "catalog", str(file), "--user", "ann@label.test")
    told = [("cli", ANN, "Louise from track 1 (Air) and 2 more tracks (import 1)")]
    assert store.read(events).result() == told
    run("import", "catalog", str(file), "--user", "ann@label.test")
    assert store.read(events).result() == told


def test_the_undo_of_an_import_is_an_event_for_who_got_one_of_its_artists(
    run: Run, store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "songs.csv"
    file.write_text("track,artist\nEtude,Clara;Fanny\nRondo,Clara;Fanny\nSolo,Clara\n")
    run("import", "catalog", str(file), "--user", "ann@label.test")
    run("artist", "assign", "Fanny", "ben@label.test")
    run("import", "undo", "1")
    chosen = SecurityEvent.kind == "track.deleted"
    columns = SecurityEvent.account_id, SecurityEvent.actor_id, SecurityEvent.reason
    found = store.read(lambda: [*SecurityEvent.select(*columns).where(chosen).tuples()]).result()
    assert found == [(BEN, None, "track 4 (Etude) and 1 more track (undo of import 1)")]
