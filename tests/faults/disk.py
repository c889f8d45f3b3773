"""A SQLite VFS in the process of the test that injects errors and records operations."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw

BASE = "unix"
NAME = "faulty"


class Fault(Protocol):
    """A function that is called before each operation and may raise one of the `errors` below."""

    def __call__(self, operation: str, file: str) -> None:
        """Take the operation (open, read, write, truncate, sync or delete) and the file's name without its folder."""


class Journal(Protocol):
    """Receiver of operations, in order, one at a time."""

    def opened(self, path: str) -> None:
        """The file was opened or created."""

    def written(self, path: str, at: int, data: bytes) -> None:
        """These bytes were written."""

    def truncated(self, path: str, size: int) -> None:
        """The file was truncated to this size."""

    def synced(self, path: str) -> None:
        """Note that all operations on the file so far are on the disk."""

    def deleted(self, path: str, *, synced: bool) -> None:
        """The file was deleted; `synced`: durably."""


def no_fault(operation: str, file: str) -> None:
    """Inject no error."""


class Disk(apsw.VFS):
    """Virtual file system between SQLite and the files of a folder; files elsewhere are not affected."""

    def __init__(self, folder: Path, fault: Fault = no_fault, journal: Journal | None = None) -> None:
        self.folder = str(folder) + "/"
        self.fault = fault
        self.journal = journal
        self.lock = threading.RLock()
        super().__init__(NAME, BASE, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - names of SQLite's interface
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self.folder):
            return apsw.VFSFile(BASE, name, flags)
        with self.lock:
            self.fault("open", Path(path).name)
            file = File(self, path, name, flags)
            if self.journal:
                self.journal.opened(path)
            return file

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802 - the same
        with self.lock:
            if name.startswith(self.folder):
                self.fault("delete", Path(name).name)
            super().xDelete(name, syncdir)
            if self.journal and name.startswith(self.folder):
                self.journal.deleted(name, synced=syncdir)


class File(apsw.VFSFile):
    """An open file."""

    def __init__(self, disk: Disk, path: str, name: Any, flags: list[int]) -> None:
        self._disk, self._path, self._name = disk, path, Path(path).name
        super().__init__(BASE, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - the same
        self._disk.fault("read", self._name)
        read: bytes = super().xRead(amount, offset)
        return read

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the same
        with self._disk.lock:
            self._disk.fault("write", self._name)
            super().xWrite(data, offset)
            if self._disk.journal:
                self._disk.journal.written(self._path, offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802 - the same
        with self._disk.lock:
            self._disk.fault("truncate", self._name)
            super().xTruncate(size)
            if self._disk.journal:
                self._disk.journal.truncated(self._path, size)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802 - the same
        with self._disk.lock:
            self._disk.fault("sync", self._name)
            # Power fails only in the simulation, so the real disk need not sync.
            if self._disk.journal:
                self._disk.journal.synced(self._path)


@contextmanager
def mounted(folder: Path, fault: Fault = no_fault, journal: Journal | None = None) -> Iterator[Disk]:
    """Use the VFS for all databases of the folder that are opened in the block."""
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
