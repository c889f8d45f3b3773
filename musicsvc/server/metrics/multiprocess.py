"""Metrics shared by the workers of one server: files in a private folder, mapped into the memory of each worker.

The replacement of a worker gets its number, opens the same files and counts on. So no sum is lost with a process, and
there are never more files than workers.
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


class SharedMetrics:
    """The folder of the shared files: created by the first process, joined by each worker."""

    def __init__(self, parent: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        # Held by this process and, after forks, by every worker; free once all of them have ended in any way.
        self._lock = (self.folder / "lock").open("wb")
        file_locks.acquire(self._lock.fileno())

    @classmethod
    @contextmanager
    def create(cls, workers: int) -> Iterator[SharedMetrics | None]:
        """Create the folder and remove it in the end. Yields None where there is no space for it."""
        shared = cls._allocate(workers, MEMORY) or cls._allocate(workers, Path(tempfile.gettempdir()))
        try:
            yield shared
        finally:
            if shared is not None:
                shared.remove()

    @classmethod
    def _allocate(cls, workers: int, parent: Path) -> SharedMetrics | None:
        """Create files of full size, because a process that touches a mapped page without space is killed."""
        shared = None
        try:
            remove_abandoned(parent)
            shared = cls(parent)
            for worker in range(workers):
                for kind, size in SIZES.items():
                    (shared.folder / f"{kind}_{worker}.db").write_bytes(bytes(size))
        except OSError:
            if shared is not None:
                shared.remove()
            return None
        return shared

    def join(self, worker: int) -> SharedMetrics | None:
        """Count as the worker of this number from now on. None without space: the worker then counts for itself."""
        try:
            self._put(f"gauge_livesum_{worker}.db", bytes(GAUGES))
            self._put(f"{worker}.pid", b"%d" % os.getpid())
        except OSError:
            return None
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.folder)  # noqa: TID251 - where the library looks for it
        values.ValueClass = values.MultiProcessValue(lambda: worker)  # type: ignore[no-untyped-call]
        return self

    def _put(self, name: str, content: bytes) -> None:
        """Write the file in one step, because other workers may be reading."""
        draft = self.folder / f"{name}.draft"
        draft.write_bytes(content)
        draft.replace(self.folder / name)

    def worker_exited(self, worker: int) -> None:
        """Remove the gauges and the process id of a worker."""
        mark_process_dead(worker, str(self.folder))  # type: ignore[no-untyped-call]
        (self.folder / f"{worker}.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def pids(self) -> dict[str, str]:
        """Return the process id of each running worker by its number."""
        found = {}
        for file in sorted(self.folder.glob("*.pid")):
            with suppress(OSError):
                found[file.stem] = file.read_text("ascii")
        return found


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of servers that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError), (folder / "lock").open("rb") as lock:
            if file_locks.acquire(lock.fileno(), timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
