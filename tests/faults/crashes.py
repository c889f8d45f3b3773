"""Possible states of a folder after a power cut, derived from a record of the operations on its files.

A file is durable once it was synced after its last write. A name is created, moved or removed durably once its folder
was synced; until then the disk may have any combination of these changes.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest

from tests.faults import disk

FD = Path("/proc/self/fd")
MANY = 12  # unsynced changes; all their combinations are checked


@dataclass(eq=False)
class File:
    """A file under any of its names; `dirty`: it was written after its last sync."""

    first_name: str
    dirty: bool = False


State = dict[str, File]
Change = tuple[str, str | None, File | None]  # the removed name, the added name, and its file


@dataclass
class Record:
    """The files below a folder by their relative names; `check` is called with each possible state after each step."""

    root: Path
    check: Callable[[State], None]
    now: State = field(default_factory=dict)
    durable: State = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    steps: int = 0

    def states(self) -> Iterator[State]:
        """Yield the possible states of the disk at this moment."""
        subsets = (combinations(self.pending, count) for count in range(len(self.pending) + 1))
        for changes in chain.from_iterable(subsets):
            state = dict(self.durable)
            for gone, come, file in changes:
                state.pop(gone, None)
                if come is not None and file is not None:
                    state[come] = file
            yield state

    def step(self) -> None:
        """Check every possible state."""
        self.steps += 1
        assert len(self.pending) < MANY, self.pending
        for state in self.states():
            self.check(state)

    def write(self, path: str | Path) -> None:
        """Record that the file was created or written."""
        name = self._name(path)
        file = self.now.get(name)
        if file is None:
            self._change("", name, File(name, dirty=True))
        elif not file.dirty:
            file.dirty = True
            self.step()

    def sync(self, path: str | Path) -> None:
        """Record that the file, or the names in the folder, were synced."""
        name = self._name(path)
        if Path(path).is_dir():
            self._settle(name)
        elif name in self.now:
            self.now[name].dirty = False
        self.step()

    def move(self, source: str | Path, target: str | Path, *, keep: bool) -> None:
        """Record that the file got another name, in addition or instead."""
        gone = self._name(source)
        self._change("" if keep else gone, self._name(target), self.now.get(gone))

    def remove(self, path: str | Path) -> None:
        """Record that the name was removed."""
        if self._name(path) in self.now:
            self._change(self._name(path), None, None)

    def _change(self, gone: str, come: str | None, file: File | None) -> None:
        self.now.pop(gone, None)
        if come is not None and file is not None:
            self.now[come] = file
        self.pending.append((gone, come, file))
        self.step()

    def _settle(self, folder: str) -> None:
        """Make the changes of names in this folder durable."""
        settled = [change for change in self.pending if str(Path(change[1] or change[0]).parent) == folder]
        for change in settled:
            self.pending.remove(change)
        for name in {*self.durable, *self.now}:
            if str(Path(name).parent) == folder:
                self.durable.pop(name, None)
                if name in self.now:
                    self.durable[name] = self.now[name]

    def _name(self, path: str | Path) -> str:
        return os.path.relpath(path, self.root)

    # Operations of SQLite, as a disk.Journal receives them.

    def opened(self, path: str) -> None:
        if self._name(path) not in self.now:
            self.write(path)

    def written(self, path: str, at: int, data: bytes) -> None:  # noqa: ARG002 - the interface
        self.write(path)

    def truncated(self, path: str, size: int) -> None:  # noqa: ARG002 - the interface
        self.write(path)

    def synced(self, path: str) -> None:
        self.sync(path)

    def deleted(self, path: str, *, synced: bool) -> None:
        self.remove(path)
        if synced:
            self.sync(Path(path).parent)


@contextmanager
def recorded(root: Path, check: Callable[[State], None]) -> Iterator[Record]:
    """Record the operations of this process and its SQLite on files below the folder (Linux)."""
    files = {os.path.relpath(path, root): path for path in root.rglob("*") if path.is_file()}
    there = {name: File(name) for name in files}
    record = Record(root, check, dict(there), dict(there))
    with disk.mounted(root, journal=record), pytest.MonkeyPatch.context() as patch:
        for name, told in _calls(record).items():
            patch.setattr(os, name, _told(getattr(os, name), told, root))
        yield record


def _calls(record: Record) -> Mapping[str, Callable[..., None]]:
    def opened(path: str | Path, flags: int) -> None:
        if flags & (os.O_WRONLY | os.O_RDWR) and flags & os.O_CREAT:
            record.write(path)

    return {
        "open": opened,
        "fsync": lambda descriptor: record.sync((FD / str(descriptor)).readlink()),
        "link": lambda source, target: record.move(source, target, keep=True),
        "rename": lambda source, target: record.move(source, target, keep=False),
        "replace": lambda source, target: record.move(source, target, keep=False),
        "unlink": record.remove,
        "remove": record.remove,
    }


def _told(call: Any, told: Callable[..., None], root: Path) -> Any:
    """Wrap the call: a success is recorded if it concerns a file below the folder."""

    def perform(first: Any, *more: Any, dir_fd: int | None = None, **options: Any) -> Any:
        result = call(first, *more, **({} if dir_fd is None else {"dir_fd": dir_fd}), **options)
        if dir_fd is not None:
            first = (FD / str(dir_fd)).readlink() / first
        about = (FD / str(first)).readlink() if isinstance(first, int) else Path(os.fspath(first))
        if about.is_relative_to(root):
            told(first, *more[:1])
        return result

    return perform
