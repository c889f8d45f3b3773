"""A restore that is interrupted, or finds the database in use, leaves the old or the new database."""

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.backups import restore as restore_backup
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.models import Tag
from tests.faults import disk, small_disk
from tests.store.backups.killed_restoring import NOW, names
from tests.support.backed_up import killed_beside_its_wal, restore
from tests.support.damage import overwrite_middle_page

pytestmark = pytest.mark.only_on("sqlite")
ROOT = Path(__file__).resolve().parents[3]


def test_a_store_that_is_opened_during_a_restore_waits_for_it_or_is_refused(
    path: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, found = f"sqlite:///{path}", list[set[str]]()
    waiting: list[threading.Thread] = []

    def open_and_read() -> None:
        with opening.connect(url) as store:
            found.append(store.read(lambda: {tag.name for tag in Tag.select()}).result())

    def told(_done: float, _total: float) -> None:
        if not waiting:
            with monkeypatch.context() as patch:
                patch.setattr(file_locks, "SHARED_TIMEOUT", 0)
                with pytest.raises(Failure, match=r"is being restored or migrated\. Try again when that is done\."):
                    opening.connect(url)
        waiting.append(threading.Thread(target=open_and_read))
        waiting[-1].start()
        time.sleep(2 * file_locks.POLL_SECONDS)
        assert not found

    restore_backup.restore(backup, path, now=NOW, on_progress=told)
    for thread in waiting:
        thread.join()
    assert found == [{"new"}] * len(waiting)
    assert len(waiting) > 1


def test_a_folder_that_cannot_be_written_is_told_with_the_remedy(backup: Path, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "small") as small:
        small.mount("ro")
        told = rf"cannot be replaced: The folder {small.folder} is on a read-only disk: .* Mount a disk"
        with pytest.raises(Failure, match=told):
            restore(backup, small.folder / "musicsvc.db")


def test_a_database_open_in_another_program_is_not_replaced(path: Path, backup: Path) -> None:
    shell = apsw.Connection(str(path))
    shell.execute("SELECT count(*) FROM tag").fetchall()
    with pytest.raises(Failure, match="is in use by a server"):
        restore(backup, path)
    shell.close()
    assert names(path) == {"old"}
    restore(backup, path)


def test_an_old_database_that_cannot_be_closed_is_not_replaced(path: Path, backup: Path) -> None:
    def fault(operation: str, file: str) -> None:
        if operation == "write" and file == path.name:
            raise disk.error(apsw.SQLITE_IOERR_WRITE)

    with disk.mounted(path.parent, fault), pytest.raises(Failure) as refusal:
        restore(backup, path)
    assert refusal.value.message.startswith(f"The old database {path} cannot be closed: ")
    assert refusal.value.message.endswith(". Nothing was changed.")
    assert names(path) == {"old"}
    assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.0])
def test_a_full_disk_is_reported_and_keeps_the_old_database(
    path: Path, backup: Path, tmp_path: Path, moment: float
) -> None:
    with small_disk.mounted(tmp_path / "small") as small:
        place = small.folder / "musicsvc.db"
        shutil.copy(path, place)

        def told(done: float, total: float) -> None:
            if done >= moment * total:
                small.fill()

        if moment == 0:
            small.fill()
        with pytest.raises(Failure, match=r"There is no room in|No space left|cannot be (opened|closed)"):
            restore_backup.restore(backup, place, now=NOW, on_progress=told)
        small.empty()
        assert names(place) == {"old"}
        assert not list(small.folder.glob(".*"))
        restore(backup, place)
        assert names(place) == {"new"}


@pytest.mark.slow
def test_a_restore_killed_before_any_step_leaves_the_old_or_the_new_database(
    path: Path,
    backup: Path,  # noqa: ARG001 - the fixture creates new.db
    tmp_path: Path,
    *,
    long: bool,
) -> None:
    killed_beside_its_wal(path, tmp_path / "old-killed")
    for kind in ("closed", "damaged"):
        shutil.copytree(tmp_path / "old-killed", tmp_path / f"old-{kind}")
    names(tmp_path / "old-closed" / "musicsvc.db")  # closing it checkpoints the WAL
    overwrite_middle_page(tmp_path / "old-damaged" / "musicsvc.db")
    (tmp_path / "old-missing").mkdir()
    command = [sys.executable, "-m", "tests.store.backups.killed_restoring", str(tmp_path), "1" if long else "7"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    killed = dict(line.split() for line in done.stdout.splitlines())
    assert set(killed) == {"closed", "killed", "damaged", "missing"}
    assert min(map(int, killed.values())) > 5
