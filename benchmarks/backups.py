"""Cost of a backup: its duration, and how long writes take meanwhile.

    python benchmarks/backups.py [FOLDER]

Eight clients write to a synthetic database of three million plays (about 330 MB; kept in FOLDER if one is given), each
a durable write every 20 ms on average. They write alone, beside `musicsvc db backup` in another process, and beside the
server's scheduled backup on a low-priority thread of the same process, in turn. At the end the last backup is restored.
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Self

import plays_world

from musicsvc import config
from musicsvc.clock import Clock
from musicsvc.server.jobs.backup_scheduler import BackupScheduler
from musicsvc.store import opening
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import restore, verify
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Tag

CALLERS, PAUSE_SECONDS, ROUNDS, ALONE_SECONDS = 8, 0.02, 5, 4.0
SIZE = plays_world.Size(plays=3_000_000)


class Writers:
    """Clients that write until they are stopped; records the duration of each write by the phase of the benchmark."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(CALLERS)]
        self.phase = "between"
        self.waits: dict[str, list[list[float]]] = defaultdict(list)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _write(self, caller: int) -> None:
        chance = random.Random(caller)  # noqa: S311 - no secrets
        while not self._ended.wait(chance.expovariate(1 / PAUSE_SECONDS)):
            phase, began = self.phase, time.perf_counter()
            name = f"{os.getpid()}-{caller}-{time.monotonic_ns()}"
            self._store.write(lambda name=name: Tag.insert(name=name).execute() and None).result()  # type: ignore[misc]
            if phase == self.phase != "between":
                self.waits[phase][-1].append(time.perf_counter() - began)

    def during(self, phase: str, work: Callable[[], object]) -> float:
        """Run the phase; return its seconds."""
        self.waits[phase].append([])
        self.phase = phase
        began = time.perf_counter()
        work()
        took = time.perf_counter() - began
        self.phase = "between"
        time.sleep(0.5)
        return took


def main() -> None:
    """Create the data, write, print."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        path = folder / "musicsvc.db"
        if not path.exists():
            plays_world.new(folder, SIZE).close()
        settings = config.load(options={"database_url": f"sqlite:///{path}", "backups.keep": 1})
        with opening.connect(settings.store_url) as store, Writers(store) as writers:
            time.sleep(2)
            seconds = _rounds(writers, settings, folder)
        print(f"{path.stat().st_size / 1e6:,.0f} MB, {1 / PAUSE_SECONDS * CALLERS:,.0f} writes/s requested")
        for phase, rounds in writers.waits.items():
            _print(phase, rounds, sorted(seconds.get(phase, [])))
        _restore(path, settings)


def _rounds(writers: Writers, settings: config.Settings, folder: Path) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {"db backup": [], "the schedule": []}
    target = folder / "by-hand.db"
    environment = {**os.environ, "MUSICSVC_DATABASE_URL": settings.store_url}  # noqa: TID251 - passed to the child
    command = [sys.executable, "-m", "musicsvc", "-q", "db", "backup", str(target)]
    for _ in range(ROUNDS):
        writers.during("alone", lambda: time.sleep(ALONE_SECONDS))
        target.unlink(missing_ok=True)
        run = lambda: subprocess.run(command, check=True, env=environment)  # noqa: E731, S603 - our own program
        seconds["db backup"].append(writers.during("db backup", run))
        for entry in backup_folder.entries(settings.backup_folder):
            entry.file.unlink()
        seconds["the schedule"].append(writers.during("the schedule", lambda: asyncio.run(_scheduled(settings))))
    target.unlink()
    return seconds


async def _scheduled(settings: config.Settings) -> None:
    scheduler = BackupScheduler(settings, Clock(), first_check=0)
    scheduler.start()
    while not backup_folder.entries(settings.backup_folder):  # noqa: ASYNC110 - a file, no event
        await asyncio.sleep(0.02)
    await scheduler.stop()


def _print(phase: str, rounds: list[list[float]], seconds: list[float]) -> None:
    """Print the medians of all rounds, and in brackets the best round, because the machine may have other work."""
    parts = []
    for name, part in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
        each = sorted(sorted(waits)[min(int(len(waits) * part), len(waits) - 1)] * 1e3 for waits in rounds)
        parts.append(f"{name} {each[len(each) // 2]:.1f} ms ({each[0]:.1f})")
    took = f"; takes {seconds[len(seconds) // 2]:.1f} s ({seconds[0]:.1f})" if seconds else ""
    print(f"{phase:13} {sum(map(len, rounds)):6,} writes: {', '.join(parts)}{took}")


def _restore(path: Path, settings: config.Settings) -> None:
    backup = backup_folder.entries(settings.backup_folder)[0].file
    began = time.perf_counter()
    verify.check(backup)
    proved = time.perf_counter()
    restore.restore(backup, path, now=Clock().now(), keep=False)
    print(f"verifying a backup takes {proved - began:.1f} s, restoring it {time.perf_counter() - proved:.1f} s")


if __name__ == "__main__":
    main()
