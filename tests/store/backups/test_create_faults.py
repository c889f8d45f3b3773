"""A backup that fails leaves no file, and one of a damaged database is not kept."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from musicsvc.errors import Failure, Unavailable
from musicsvc.store import opening
from musicsvc.store.backups import create
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from tests.faults import disk, small_disk
from tests.support.backed_up import GENRES, fill, names, unit
from tests.support.damage import overwrite_middle_page

pytestmark = pytest.mark.only_on("sqlite")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(store: Store) -> Path:
    """The file of an open store of a few megabytes."""
    return fill(store)


def test_a_full_disk_is_reported_before_copying(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=1_500_000))
    with pytest.raises(Failure, match=r"no room for a backup in .*: it needs [0-9.]+ MB, and 1\.5 MB are free"):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


FAILING = "The backup {1} cannot be written, or {0} not be read: a disk may be full or failing. It was not kept."
DAMAGED = "The database {0} is damaged, and no backup was created. Run: musicsvc db check"


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (apsw.SQLITE_FULL, Failure, "The disk of {1} is full; the backup was not kept."),
        (apsw.SQLITE_IOERR_WRITE, Failure, FAILING),
        (apsw.SQLITE_BUSY, Unavailable, "The database is locked by another program. Try again shortly."),
        (apsw.SQLITE_CORRUPT, Failure, DAMAGED),
        (apsw.SQLITE_NOTADB, Failure, DAMAGED),
        (apsw.SQLITE_PERM, Failure, "The backup {1} cannot be created: ."),
    ],
)
def test_an_error_while_copying_is_explained_and_leaves_no_file(
    store: Store, path: Path, folder: Path, code: int, kind: type[Failure], says: str
) -> None:
    writes = 0

    def fault(operation: str, file: str) -> None:  # noqa: ARG001 - the disk gives it
        nonlocal writes
        writes += operation == "write"
        if writes > 300:
            raise disk.error(code)

    with disk.mounted(folder, fault), pytest.raises(Failure) as refusal:
        create.create(path, folder / "one.db")
    assert (type(refusal.value), refusal.value.message) == (kind, says.format(path, folder / "one.db"))
    assert list(folder.iterdir()) == []
    store.write(lambda: unit("after")).result()
    assert "after" in names(create.create(path, folder / "one.db").file)[0]


def test_an_error_of_the_system_while_copying_is_explained(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    target = folder / "one.db"
    monkeypatch.setattr(shutil, "disk_usage", fails)
    with pytest.raises(Failure) as refusal:
        create.create(path, target)
    assert refusal.value.message == f"The backup {target} cannot be written: Input/output error."
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_with_the_remedy(path: Path, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "small") as small:
        small.mount("ro")
        with pytest.raises(Failure, match=rf"^The folder {small.folder} is on a read-only disk: .* Mount a disk"):
            create.create(path, small.folder / "one.db")


def test_a_disk_that_fills_up_while_copying_gives_no_backup(path: Path, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "small") as small:

        def told(done: float, total: float) -> None:
            if total > 1 and done > total / 2:
                small.fill()

        target = small.folder / "one.db"
        with pytest.raises(Failure, match=rf"The (disk of|backup) {target} (is full|cannot be written)"):
            create.create(path, target, told)
        small.empty()
        assert list(small.folder.iterdir()) == []
        create.create(path, target)


def test_a_damaged_copy_is_not_kept(path: Path, folder: Path) -> None:
    def told(done: float, total: float) -> None:
        if done == total == 1:  # copied, before it is verified
            (draft,) = folder.iterdir()
            with draft.open("r+b") as file:
                file.seek(draft.stat().st_size // 2 // 4096 * 4096)
                file.write(b"\xa5" * 8192)

    with pytest.raises(Failure, match=rf"^The backup {folder}/one\.db was not kept: the copy is damaged.* db check$"):
        create.create(path, folder / "one.db", told)
    assert list(folder.iterdir()) == []


def test_a_copy_that_lacks_a_row_is_not_kept(path: Path, folder: Path) -> None:
    def lose(done: float, total: float) -> None:
        if done == total == 1:  # copied, before it is verified
            (draft,) = folder.iterdir()
            connection = apsw.Connection(str(draft))
            connection.execute("DELETE FROM tag WHERE id = 1")
            connection.close()

    with pytest.raises(Failure, match=rf"^The backup {folder}/one\.db differs from the database"):
        create.create(path, folder / "one.db", lose)
    assert list(folder.iterdir()) == []


def test_dangling_rows_are_reported_as_damage_of_the_database(path: Path, folder: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO track_genre (track_id, genre_id) VALUES (7, 9999)")
    connection.close()
    with pytest.raises(
        Failure, match=rf"^The database {path} is damaged, .*refers to a missing row\. Run: musicsvc db check$"
    ):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


def test_a_damaged_database_gives_no_backup(store_url: str, folder: Path) -> None:
    with opening.connect(store_url) as store:
        store.write(lambda: current().execute_sql(GENRES) and None).result()
    path = Path(store_url.removeprefix("sqlite:///"))
    overwrite_middle_page(path)
    with pytest.raises(Failure, match="damaged"):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_backup_killed_before_any_step_is_cleaned_up_by_the_next(
    store: Store, path: Path, tmp_path: Path, *, long: bool
) -> None:
    store.close()
    command = [
        sys.executable,
        "-m",
        "tests.store.backups.killed_backups",
        str(path),
        str(tmp_path),
        "1" if long else "15",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
