"""On a full disk revocations are written to reserved space; other writes are refused."""

import errno
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from musicsvc.errors import Unavailable
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.doctor.files import check_disks
from musicsvc.store.engine.sqlite import files, reserved_space
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag
from tests.faults import small_disk, system
from tests.faults.small_disk import SmallDisk

pytestmark = pytest.mark.only_on("sqlite")

NOW = 1_772_366_400_000_000
TOKENS = 30


def _people() -> None:
    """Create an account with tokens to revoke."""
    user = users.create("ann@label.test", api_access=True, now=NOW)
    for number in range(TOKENS):
        tokens.create(user, f"token {number}", now=NOW)


def _revoke(token_id: int) -> None:
    tokens.revoke(token_id, "a test", now=NOW)


def _revoked() -> int:
    return sum(token.revoked_at is not None for token in tokens.list())


def _flood() -> None:
    for number in range(50):
        Tag.create(name=f"{number}" + "x" * 20_000)


def _room(file: Path) -> int:
    return file.with_name(reserved_space.NAME).stat().st_size


def test_reserved_space_uses_real_blocks_and_is_readable_by_its_owner_only(store: Store, file: Path) -> None:
    for _ in range(2):
        assert store.reserve_space() == ""
        status = file.with_name("ballast").stat()
        assert (status.st_size, stat.S_IMODE(status.st_mode)) == (4 * 1024 * 1024, 0o600)
        assert status.st_blocks * 512 >= status.st_size


def test_space_that_cannot_be_reserved_is_told_with_the_file_and_the_reason(store: Store, file: Path) -> None:
    place = file.with_name("ballast")
    place.mkdir()
    told = f"{place} cannot be created, and revoking tokens may fail on a full disk: Is a directory."
    assert store.reserve_space() == told


def test_reserved_space_is_released_in_slices_and_refilled(tmp_path: Path) -> None:
    file = tmp_path / "musicsvc.db"
    reserved = ReservedSpace(file)
    assert not reserved.release()
    reserved.fill()
    assert [reserved.release() for _ in range(9)] == [True] * 8 + [False]
    assert _room(file) == 0
    reserved.refill()
    assert _room(file) == reserved_space.SIZE
    file.with_name("ballast").unlink()
    assert not reserved.release()


class FullDisk:
    """A disk whose only free space is the released part of the reserved space."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.written = 0

    def __call__(self, operation: str, file: str) -> int:  # noqa: ARG002 - a Fault
        released = reserved_space.SIZE - _room(self._file)
        return errno.ENOSPC if operation in {"write", "truncate"} and released == 0 else 0


def test_on_a_full_disk_a_revocation_is_written_and_other_units_fail(store: Store, file: Path) -> None:
    store.write(_people).result()
    store.reserve_space()
    with system.calls(file.parent) as calls:
        calls.fault = FullDisk(file)
        release = threading.Event()
        first = store.write(lambda: release.wait(30) and None)
        others = [store.write(lambda number=number: Tag.create(name=f"{number}") and None) for number in range(5)]  # type: ignore[misc]
        urgent = [store.write(lambda number=number: _revoke(number), urgent=True) for number in (1, 2)]  # type: ignore[misc]
        release.set()
        first.result(30)
        assert [future.exception(10) for future in urgent] == [None, None]
        assert [isinstance(future.exception(10), Unavailable) for future in others] == [True] * 5
        assert store.read(_revoked).result() == 2
    store.write(lambda: Tag.create(name="later") and None).result(30)
    assert _room(file) == reserved_space.SIZE


def test_on_a_full_disk_without_reserved_space_a_revocation_fails(store: Store, file: Path) -> None:
    store.write(_people).result()
    with system.calls(file.parent) as calls:
        calls.fault = lambda operation, _: errno.ENOSPC if operation == "write" else 0
        with pytest.raises(Unavailable):
            store.write(lambda: _revoke(1), urgent=True).result(30)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk.mounted(tmp_path / "small") as disk:
        yield disk


@pytest.fixture
def url_on_disk(disk: SmallDisk, file: Path) -> str:
    """A database on the small disk."""
    copy = disk.folder / file.name
    copy.write_bytes(file.read_bytes())
    return f"sqlite:///{copy}"


@pytest.mark.slow
def test_a_really_full_disk_takes_every_revocation_and_no_other_write(disk: SmallDisk, url_on_disk: str) -> None:
    with opening.connect(url_on_disk) as store:
        store.write(_people).result()
        store.reserve_space()
        disk.fill()
        for number in range(1, TOKENS + 1):
            assert isinstance(store.write(_flood).exception(10), Unavailable)
            store.write(lambda number=number: _revoke(number), urgent=True).result(30)  # type: ignore[misc]
            assert store.read(_revoked).result() == number
        disk.empty()
        store.write(lambda: Tag.create(name="later") and None).result(30)
        store.reserve_space()
        assert _room(disk.folder / "musicsvc.db") == reserved_space.SIZE


def test_a_database_on_a_full_disk_opens_and_takes_a_revocation(disk: SmallDisk, url_on_disk: str) -> None:
    with opening.connect(url_on_disk) as store:
        store.write(_people).result()
        store.reserve_space()
    disk.fill()
    with opening.connect(url_on_disk) as store:
        store.write(lambda: _revoke(1), urgent=True).result(30)
    with opening.connect(url_on_disk) as store:
        assert store.read(_revoked).result() == 1


def test_a_disk_without_inodes_is_written_and_told_by_doctor(disk: SmallDisk, url_on_disk: str) -> None:
    file = disk.folder / "musicsvc.db"
    with opening.connect(url_on_disk) as store:
        disk.use_inodes()
        store.write(lambda: Tag.create(name="written") and None).result(30)
        assert files.write_fault(file) == ""
        (finding,) = check_disks(file, disk.folder / "backups", ())
        assert finding.finding == f"Only 0 more files can be created on the disk of {disk.folder}."
        disk.fill()
        assert files.write_fault(file) == f"The disk of {file} is full. Make room on it, then try again."


def test_a_database_that_a_full_disk_cannot_take_is_named(disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(Unavailable) as refused:
        files.create(disk.folder / "new.db")
    assert refused.value.here == f"The disk of {disk.folder / 'new.db'} is full. Make room on it, then try again."
    assert list(disk.folder.glob("*new.db*")) == []
