"""Metrics of all workers of a server, in memory-mapped files. A worker continues in those of an earlier one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from musicsvc import scratch

MEMORY = Path("/dev/shm")  # noqa: S108 - files there are in memory, and never wait for a disk
# Not that of version 0.1.0, `musicsvc-metrics-`, which locks a file in its folder: its folders would seem abandoned.
PREFIX = "musicsvc-counters-"
SIZES = {"counter": 2 * 1024 * 1024, "histogram": 2 * 1024 * 1024}
GAUGES = 16 * 1024


class SharedMetrics:
    """The folder of the shared metrics files. The first process creates it. Each worker then calls `join`."""

    def __init__(self, parent: Path | None) -> None:
        # This process and every worker forked from it hold the lock; it is released when the last of them ends.
        self.folder, self._lock = scratch.make(parent, PREFIX)

    @classmethod
    @contextmanager
    def create(cls, workers: int) -> Iterator[SharedMetrics | None]:
        """Create files for the workers and their successors for the `with` block. Yields None if there is no space."""
        shared = cls._allocate(workers, MEMORY) or cls._allocate(workers, None)
        try:
            yield shared
        finally:
            if shared is not None:
                shared.remove()

    @classmethod
    def _allocate(cls, workers: int, parent: Path | None) -> SharedMetrics | None:
        """Create the files at full size, so that later writes need no more space. Return None if there is no space."""
        shared = None
        try:
            scratch.remove_leftovers(parent or Path(tempfile.gettempdir()), PREFIX)
            shared = cls(parent)
            for worker in range(2 * workers):
                shared._reserve(worker)
        except OSError:
            if shared is not None:
                shared.remove()
            return None
        return shared

    def _reserve(self, worker: int) -> None:
        for kind, size in SIZES.items():
            file = self.folder / f"{kind}_{worker}.db"
            if not file.exists():
                file.write_bytes(bytes(size))

    def join(self, worker: int) -> SharedMetrics | None:
        """Make this process record its metrics in the files of `worker`. Return self, or None if there is no space."""
        try:
            self._reserve(worker)
            self._put(f"gauge_livesum_{worker}.db", bytes(GAUGES))
            self._put(f"{worker}.pid", b"%d" % os.getpid())
        except OSError:
            return None
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self.folder)  # noqa: TID251 - where the library looks for it
        from prometheus_client import values  # noqa: PLC0415 - the supervisor does without it

        values.ValueClass = values.MultiProcessValue(lambda: worker)
        return self

    def _put(self, name: str, content: bytes) -> None:
        """Replace the file atomically, because other workers may be reading it."""
        draft = self.folder / f"{name}.draft"
        draft.write_bytes(content)
        draft.replace(self.folder / name)

    def worker_exited(self, worker: int) -> None:
        """Remove the gauges and the process id of a worker that has exited."""
        (self.folder / f"gauge_livesum_{worker}.db").unlink(missing_ok=True)
        (self.folder / f"{worker}.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def pids(self) -> dict[str, str]:
        """Return the process ids of the running workers by worker number."""
        found = {}
        for file in sorted(self.folder.glob("*.pid")):
            with suppress(OSError):
                found[file.stem] = file.read_text("ascii")
        return found
