"""What the workers of one server count together: files in a private folder, mapped into the memory of each.

A worker has a number, which the one that takes its place gets too: it opens the same files and counts on, so that no
sum is lost with a process and there are never more files than workers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import values
from prometheus_client.multiprocess import mark_process_dead

from musicsvc.store.engine.sqlite import file_locks

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = Path("/dev/shm")  # noqa: S108 - files there are memory, and never wait for a disk
PREFIX = "musicsvc-metrics-"
SIZES = {"counter": 512 * 1024, "histogram": 1024 * 1024}
GAUGES = 16 * 1024


class Share:
    """The folder; `made` in the first process, joined by each worker."""

    def __init__(self, place: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        # Held by this process and, after forks, by every worker: free once all of them are gone, however they ended.
        self._lock = (self.folder / "lock").open("wb")
        file_locks.acquire(self._lock.fileno())

    @classmethod
    @contextmanager
    def made(cls, workers: int) -> Iterator[Share | None]:
        """A fresh folder that is gone in the end; None where there is no room for it."""
        share = cls._reserved(workers, MEMORY) or cls._reserved(workers, Path(tempfile.gettempdir()))
        try:
            yield share
        finally:
            if share is not None:
                share.remove()

    @classmethod
    def _reserved(cls, workers: int, place: Path) -> Share | None:
        """Take the room now: a process that touches a mapped page for which there is none is killed."""
        share = None
        try:
            clear(place)
            share = cls(place)
            for worker in range(workers):
                for kind, size in SIZES.items():
                    (share.folder / f"{kind}_{worker}.db").write_bytes(bytes(size))
        except OSError:
            if share is not None:
                share.remove()
            return None
        return share

    def joined(self, worker: int) -> Share | None:
        """Count as the worker of this number from now on; None where there is no room, and it counts by itself."""
        try:
            self._put(f"gauge_livesum_{worker}.db", bytes(GAUGES))
            self._put(f"{worker}.pid", b"%d" % os.getpid())
        except OSError:
            return None
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.folder)  # noqa: TID251 - where the library looks for it
        values.ValueClass = values.MultiProcessValue(lambda: worker)  # type: ignore[no-untyped-call]
        return self

    def _put(self, name: str, content: bytes) -> None:
        """The file is there as a whole or not at all: the other workers may be reading."""
        draft = self.folder / f"{name}.draft"
        draft.write_bytes(content)
        draft.replace(self.folder / name)

    def bury(self, worker: int) -> None:
        """Take out what only a living worker has."""
        mark_process_dead(worker, str(self.folder))  # type: ignore[no-untyped-call]
        (self.folder / f"{worker}.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def pids(self) -> dict[str, str]:
        """The process of each living worker by its number."""
        found = {}
        for file in sorted(self.folder.glob("*.pid")):
            with suppress(OSError):
                found[file.stem] = file.read_text("ascii")
        return found


def clear(place: Path) -> None:
    """Remove the folders of servers that were killed and could not do it themselves."""
    for folder in place.glob(f"{PREFIX}*"):
        with suppress(OSError), (folder / "lock").open("rb") as lock:
            if file_locks.acquire(lock.fileno(), timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
