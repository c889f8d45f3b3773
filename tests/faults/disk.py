"""A disk under SQLite, in the test's own process: it fails when told to, and can be without power from a moment on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = "unix"
NAME = "faulty"


class Fault(Protocol):
    """Is asked before each operation, and may raise what the disk answers; `errors` below are such answers."""

    def __call__(self, operation: str, file: str) -> None:
        """`operation`: open, read, write, truncate, sync or delete; `file`: the name without its folder."""


class Journal(Protocol):
    """Receiver of operations, in order, one at a time."""

    def opened(self, path: str) -> None:
        """The file is open, and was made where there was none."""

    def written(self, path: str, at: int, data: bytes) -> None:
        """These bytes stand there now."""

    def truncated(self, path: str, size: int) -> None:
        """The file has this size now."""

    def synced(self, path: str) -> None:
        """Note that all operations on the file so far are on the disk."""

    def deleted(self, path: str, *, synced: bool) -> None:
        """The file is gone, and with `synced` for good."""


def no_fault(operation: str, file: str) -> None:
    """All is well."""


class Disk(apsw.VFS):
    """Virtual file system between SQLite and the files of a folder; files elsewhere are not affected."""

    def __init__(self, folder: Path, fault: Fault = no_fault, journal: Journal | None = None) -> None:
        self.folder = str(folder) + "/"
        self.fault = fault
        self.journal = journal
        self.lock = threading.RLock()
        super().__init__(NAME, BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's own names, here and below
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self.folder):
            return apsw.VFSFile(BASE, name, flags)
        with self.lock:
            self.fault("open", Path(path).name)
            file = File(self, path, name, flags)
            if self.journal:
                self.journal.opened(path)
            return file

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        with self.lock:
            if name.startswith(self.folder):
                self.fault("delete", Path(name).name)
            super().xDelete(name, syncdir)
            if self.journal and name.startswith(self.folder):
                self.journal.deleted(name, synced=syncdir)


class File(apsw.VFSFile):
    """An open file of the disk."""

    def __init__(self, disk: Disk, path: str, name: Any, flags: list[int]) -> None:
        self._disk, self._path, self._name = disk, path, Path(path).name
        super().__init__(BASE, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.fault("read", self._name)
        read: bytes = super().xRead(amount, offset)
        return read

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._disk.lock:
            self._disk.fault("write", self._name)
            super().xWrite(data, offset)
            if self._disk.journal:
                self._disk.journal.written(self._path, offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        with self._disk.lock:
            self._disk.fault("truncate", self._name)
            super().xTruncate(size)
            if self._disk.journal:
                self._disk.journal.truncated(self._path, size)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        with self._disk.lock:
            self._disk.fault("sync", self._name)
            # Nothing is cut off but here: the real disk need not be waited for.
            if self._disk.journal:
                self._disk.journal.synced(self._path)


@contextmanager
def mounted(folder: Path, fault: Fault = no_fault, journal: Journal | None = None) -> Iterator[Disk]:
    """The disk under all databases of the folder that are opened within the block."""
    disk = Disk(folder, fault, journal)
    try:
        yield disk
    finally:
        disk.fault = no_fault
        disk.unregister()


def error(code: int) -> Exception:
    """Return the exception for a result code: SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_READONLY …"""
    made: Exception = apsw.exception_for(code)
    return made
