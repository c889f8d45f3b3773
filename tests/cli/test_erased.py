"""Nothing of erased listeners and deleted accounts is left in files, and in later backups, beside a running server."""

import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place, refused_name
from musicsvc.store.models import Comment, ImportTask, Playlist, Track, User
from musicsvc.store.people import deletion
from musicsvc.store.plays.rollups import listeners
from tests.cli.conftest import Run
from tests.support.file_bytes import of_files, of_folder
from tests.support.program import Program, until

pytestmark = pytest.mark.only_on("sqlite")
ROUNDS = 6


@pytest.fixture
def served(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:  # noqa: ARG001 - it names the database
    """Run a server that creates no backups, which would be older ones."""
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")
    with (
        Program(tmp_path, "serve", "--port", "0") as program,
        urlopen(f"{program.root}/healthz"),  # noqa: S310 - answered by a worker, which has opened the database
    ):
        yield program


@pytest.fixture
def folder(store_url: str) -> Path:
    return Path(store_url.removeprefix("sqlite:///")).parent


def add_listeners(store_url: str, names: list[str]) -> None:
    """Add listeners with these names among a thousand others, in the order in which pages get full and are split."""
    others = [f"other-{secrets.token_hex(8)}" for _ in range(1000)]
    mixed = [name for some in zip(*[iter(others)] * 50, strict=True) for name in some]
    for at, name in enumerate(names):
        mixed.insert((at + 1) * 120, name)
    with opening.connect(store_url) as store:
        for start in range(0, len(mixed), 100):
            keys = [listeners.opaque_key(name) for name in mixed[start : start + 100]]
            store.write(partial(listeners.ensure, keys)).result()


def names_in(content: bytes, names: list[str]) -> list[str]:
    return [name for name in names if name.encode() in content]


@pytest.mark.slow
@pytest.mark.usefixtures("served")
def test_the_name_of_an_erased_listener_is_in_no_file_and_in_no_later_backup(
    run: Run, store_url: str, folder: Path, tmp_path: Path
) -> None:
    names = [f"fan-{secrets.token_hex(8)}" for _ in range(ROUNDS)]
    add_listeners(store_url, names)
    for number, name in enumerate(names):
        assert names_in(of_folder(folder), names[number:]) == names[number:]
        said = run("listener", "erase", name, "--yes").stderr
        assert "older backups still have the name" in said
        assert "Warning" not in said
        backup = tmp_path / f"{number}.db"
        run("db", "backup", str(backup))
        assert names_in(of_folder(folder) + of_files(backup), names[: number + 1]) == []


@pytest.mark.slow
@pytest.mark.usefixtures("served")
def test_the_data_of_a_deleted_account_is_in_no_file_and_in_no_later_backup(
    run: Run, store_url: str, folder: Path, tmp_path: Path
) -> None:
    names = [f"ann-{secrets.token_hex(8)}" for _ in range(ROUNDS)]
    for number, name in enumerate(names):
        run("user", "create", f"{name}@label.test")
        run("user", "edit", f"{name}@label.test", "--display-name", f"Name {name}")
        _comment(store_url, name)
        assert names_in(of_folder(folder), [name]) == [name]
        export = tmp_path / f"{number}.json"
        assert "Warning" not in run("user", "delete", f"{name}@label.test", "--yes", "--output", str(export)).stderr
        assert name.encode() in of_files(export)  # as the operator asked
        backup = tmp_path / f"{number}.db"
        run("db", "backup", str(backup))
        assert names_in(of_folder(folder) + of_files(backup), names) == []


def _comment(store_url: str, name: str) -> None:
    def unit() -> None:
        user = User.get(User.email == f"{name}@label.test")
        track = Track.create(name="Track", duration=1, created_at=1)
        Comment.create(
            track=track, user=user, content=f"I am {name}. " * 300, position=0, depth=0, place=1, created_at=1
        )

    with opening.connect(store_url) as store:
        store.write(unit).result()


@pytest.mark.usefixtures("run")
def test_an_account_deleted_by_a_server_is_overwritten_soon(store_url: str, folder: Path) -> None:
    name, indexed = f"ann-{secrets.token_hex(8)}", "ꙮꙮꙮ"  # an index of names has three characters in a row
    with opening.connect(store_url) as store:

        def create() -> int:
            user = users.create(f"{name}@label.test", display_name=indexed, now=1)
            Playlist.create(owner=user, name=indexed, public=True, created_at=1)
            return int(user.id)

        user = store.write(create).result()
        assert names_in(of_folder(folder), [name, indexed]) == [name, indexed]
        store.write(partial(deletion.delete, user, now=1)).result()
        until(lambda: not names_in(of_folder(folder), [name, indexed]))


@pytest.mark.usefixtures("run")
def test_uploaded_files_of_plays_and_their_refused_rows_go_with_an_erased_listener(
    store_url: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"fan-{secrets.token_hex(8)}"
    place = Place.build(folder / "temporary", store_url)
    with opening.connect(store_url) as store:

        def fill() -> int:
            listeners.ensure([listeners.opaque_key(name)])
            user = users.create("ann@label.test", now=1).id
            queue.create(user, "plays", "plays.csv", "stored.csv", place.name, Clock().now())
            ImportTask.update(state=queue.DONE, report=f'{{"rows": ["{name}"]}}').execute()
            return int(user)

        user = store.write(fill).result()
        with place.locked(user) as uploads:
            for each in ("stored.csv", refused_name("stored.csv")):
                (uploads / each).write_text(f"{name},no such track\n")
    assert name.encode() in of_folder(folder)
    with opening.connect(store_url) as store:
        store.write(partial(deletion.erase_listener, name, now=1)).result()
        assert store.overwritten(60)
    assert name.encode() not in of_files(folder / "musicsvc.db", folder / "musicsvc.db-wal")
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")
    # A server looks for files that nobody needs when it starts, and every minute.
    with Program(tmp_path, "serve", "--port", "0"):
        until(lambda: name.encode() not in of_folder(folder))
