"""The system calls that SQLite makes on the files of a folder, which fail with an `errno` when told to (Linux).

This is SQLite as it is served, its memory map and its locks too: only what the system answers is another thing.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ctypes import c_char_p, c_int, c_longlong, c_size_t, c_ssize_t, c_void_p
from pathlib import Path
from typing import Any, Protocol

import apsw

DESCRIPTORS = Path("/proc/self/fd")
AT = (c_ssize_t, c_int, c_void_p, c_size_t, c_longlong)
PLAIN = (c_ssize_t, c_int, c_void_p, c_size_t)
# SQLite's names of the calls, their operations and types; calls that this build lacks are skipped.
CALLS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "open": ("open", (c_int, c_char_p, c_int, c_int)),
    "pread64": ("read", AT),
    "pread": ("read", AT),
    "read": ("read", PLAIN),
    "pwrite64": ("write", AT),
    "pwrite": ("write", AT),
    "write": ("write", PLAIN),
    "ftruncate": ("truncate", (c_int, c_int, c_longlong)),
    "unlink": ("delete", (c_int, c_char_p)),
    "close": ("close", (c_int, c_int)),
}


class Fault(Protocol):
    """A function that returns the errno of a call, 0 for success."""

    def __call__(self, operation: str, file: str) -> int:
        """Take the operation (open, close, read, write, truncate or delete) and the file's name without its folder."""


def no_fault(operation: str, file: str) -> int:  # noqa: ARG001 - a Fault
    """Inject no error."""
    return 0


class System:
    """The system calls on files of one folder; `fault` can be set at any time."""

    def __init__(self, folder: Path) -> None:
        self.fault: Fault = no_fault
        self._folder = str(folder) + "/"
        self._names = dict(_open_files(self._folder))  # names of the files in the folder by descriptor
        self._vfs = apsw.VFS("probe", "unix")
        self._kept: list[object] = []  # SQLite holds only addresses of these
        for name, (operation, types) in CALLS.items():
            if address := self._vfs.xGetSystemCall(name):
                kind = ctypes.CFUNCTYPE(*types, use_errno=True)
                ours = kind(self._made(operation, kind(address)))
                self._kept.append(ours)
                self._vfs.xSetSystemCall(name, ctypes.cast(ours, c_void_p).value or 0)

    def _made(self, operation: str, theirs: Any) -> Any:
        def call(target: int | bytes, *more: Any) -> int:
            name = self._name(target)
            if name is not None and (number := self.fault(operation, name)):
                ctypes.set_errno(number)
                return -1
            result = int(theirs(target, *more))
            if name is not None and operation == "open" and result >= 0:
                self._names[result] = name
            elif operation == "close" and isinstance(target, int):
                self._names.pop(target, None)
            return result

        return call

    def _name(self, target: int | bytes) -> str | None:
        """Return the name of the file, None if it is not in the folder, without a system call."""
        if isinstance(target, int):
            return self._names.get(target)
        path = target.decode()
        return path.removeprefix(self._folder) if path.startswith(self._folder) else None

    def restore(self) -> None:
        """Restore the real calls of SQLite."""
        self.fault = no_fault
        self._vfs.xSetSystemCall(None, 0)
        self._vfs.unregister()


def _open_files(folder: str) -> Iterator[tuple[int, str]]:
    """Yield the files of the folder that are already open."""
    for entry in DESCRIPTORS.iterdir():
        with suppress(OSError):  # closed meanwhile
            path = str(entry.readlink())
            if path.startswith(folder):
                yield int(entry.name), path.removeprefix(folder)


@contextmanager
def calls(folder: Path) -> Iterator[System]:
    """Intercept the calls on the folder in the block."""
    system = System(folder)
    try:
        yield system
    finally:
        system.restore()
