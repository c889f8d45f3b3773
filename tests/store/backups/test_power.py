"""Power failures at any step of a backup, a restore or an init leave only complete files."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.clock import SECOND
from musicsvc.store.backups import create, restore
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups.folder import SCHEDULED
from musicsvc.store.engine.sqlite import files
from tests.faults.crashes import Record, State, recorded
from tests.store.backups.killed_restoring import NOW, names
from tests.support.backed_up import add, killed_beside_its_wal

pytestmark = pytest.mark.only_on("sqlite")


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with hard links, or without."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links")

    if not request.param:
        monkeypatch.setattr(os, "link", refuse)


@pytest.fixture
def path(store_url: str) -> Path:
    """A closed database with one tag."""
    add(store_url, "old")
    return Path(store_url.removeprefix("sqlite:///"))


@pytest.fixture
def folder(path: Path) -> Path:
    made = path.parent / "backups"
    made.mkdir(mode=0o700)
    return made


def named(state: State) -> list[str]:
    """Return the names of backups in the folder."""
    return [name for name in state if backup_folder.NAME.fullmatch(Path(name).name)]


def whole(state: State) -> None:
    """Check that every file with the name of a backup is complete."""
    assert [name for name in named(state) if state[name].dirty] == []


def settled(record: Record) -> State:
    """The one state that is possible once all is done, as far as names count that last."""
    shown = [{name: file for name, file in state.items() if named({name: file})} for state in record.states()]
    assert all(each == shown[0] for each in shown)
    return shown[0]


@pytest.mark.usefixtures("links")
def test_a_file_with_the_name_of_a_backup_is_complete_and_stays(path: Path, folder: Path) -> None:
    with recorded(path.parent, whole) as record:
        made = create.create(path, backup_folder.new_name(folder, NOW))
        assert list(settled(record)) == [f"backups/{made.file.name}"]
    assert record.steps > 5


def test_an_older_backup_is_deleted_only_after_the_new_one_is_synced(path: Path, folder: Path) -> None:
    create.create(path, backup_folder.new_name(folder, NOW, SCHEDULED))

    def check(state: State) -> None:
        whole(state)
        assert named(state)

    with recorded(path.parent, check) as record:
        fresh = create.create(path, backup_folder.new_name(folder, NOW + SECOND, SCHEDULED)).file
        (gone,) = backup_folder.prune(folder, 1, fresh, now=NOW + SECOND)
        assert f"backups/{gone.name}" not in record.now


@pytest.mark.usefixtures("links")
def test_a_new_database_gets_its_name_only_when_it_is_complete(tmp_path: Path) -> None:
    def check(state: State) -> None:
        assert "musicsvc.db" not in state or not state["musicsvc.db"].dirty

    root = tmp_path / "new"
    root.mkdir()
    with recorded(root, check) as record:
        files.create(root / "musicsvc.db")
        assert all("musicsvc.db" in state for state in record.states())


@pytest.mark.slow
@pytest.mark.usefixtures("links")
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", ["closed", "killed", "damaged", "missing"])
def test_a_restore_leaves_the_old_or_the_new_database_without_files_of_the_other(
    path: Path, new_database: Callable[..., str], tmp_path: Path, kind: str, *, keep: bool
) -> None:
    other = new_database()
    add(other, "new")
    backup = create.create(Path(other.removeprefix("sqlite:///")), tmp_path / "new.db").file
    place = prepare(path, tmp_path / "restored", kind)
    kept = kind == "damaged" or (keep and kind != "missing")

    def check(state: State) -> None:
        found = state.get(place.name)
        second = [name for name in state if name in named(state) or name.endswith(".replaced")]
        assert not any(state[name].dirty for name in second)
        assert found is not None or kind == "missing"
        # Under its own name the old database is in the hands of SQLite, which looks after what it writes.
        if found is not None and found.first_name != place.name:
            assert not found.dirty
            assert not {"musicsvc.db-wal", "musicsvc.db-journal"} & {*state}
            assert second or not kept

    with recorded(place.parent, check) as record:
        done = restore.restore(backup, place, now=NOW, keep=keep)
        assert (done.kept is not None) is kept
        for state in record.states():
            assert state[place.name].first_name != place.name
            assert done.kept is None or done.kept.name in state
    assert names(place) == {"new"}


def prepare(path: Path, root: Path, kind: str) -> Path:
    """Open the replaced database in this state."""
    place = root / path.name
    if kind in {"killed", "damaged"}:
        killed_beside_its_wal(path, root)
    else:
        path.parent.rename(root)
    if kind == "damaged":
        place.write_bytes(b"noise " * 10_000)
    if kind == "missing":
        place.unlink()
    return place
