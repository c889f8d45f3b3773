"""Scheduled backups: one process per machine makes them, on a low-priority thread."""

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from musicsvc import descriptors, permissions
from musicsvc.clock import HOUR, SECOND, Clock
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.server.jobs.periodic import Periodic
from musicsvc.server.request.executors import lower_priority
from musicsvc.store.backups import create, folder, verify
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.url import path_of

log = logging.getLogger("musicsvc")
FIRST_CHECK_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 60.0  # short, because the clock may be changed or another process may end
RETRY_SECONDS = 900.0
LOCK = folder.LOCK


class Abandoned(Exception):
    """Raised to end the backup in progress when the server stops."""


class BackupScheduler:
    """Makes a backup when the last good backup is too old, and deletes surplus backups."""

    def __init__(self, settings: Settings, clock: Clock, first_check: float = FIRST_CHECK_SECONDS) -> None:
        """`first_check`: seconds from `start` to the first check whether a backup is due."""
        self._settings = settings
        self._clock = clock
        self._path = create.database_file(settings.store_url)
        self._folder = settings.backup_folder
        self._stopping = threading.Event()
        self._thread = ThreadPoolExecutor(1, "backups", initializer=lower_priority)
        self._job = Periodic("making a backup", self._run, every=RETRY_SECONDS, first=first_check)
        self._lock: int | None = None
        # File ids of backups that passed or failed verification; a disk may damage a backup after it was made.
        self._verified: set[str] = set()
        self._damaged: set[str] = set()

    def start(self) -> None:
        self._job.start()

    async def stop(self) -> None:
        """Abandon the backup in progress, and release the lock so that another process can make backups."""
        self._stopping.set()
        await asyncio.wait([asyncio.create_task(self._job.stop())], timeout=self._settings.server.shutdown_timeout)
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._lock is not None:
            os.close(self._lock)

    async def _run(self) -> float:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self.make_if_due)
        except Abandoned:
            return LONGEST_PAUSE_SECONDS

    def make_if_due(self) -> float:
        """Make a backup if it is due. Return the seconds until the next check. Raises Failure if an error occurs."""
        try:
            self._path.stat()  # a data folder that was moved is not created again, so that it can be put back
            if not self._acquire_lock():
                return LONGEST_PAUSE_SECONDS
            pause = self._seconds_left()
            if pause <= 0:
                self._make()
                pause = self._seconds_left()
            return min(max(pause, 1.0), LONGEST_PAUSE_SECONDS)
        except OSError as error:
            denied = permissions.denial(self._folder / LOCK, write=True)
            raise Failure(str(denied or f"{error.filename or self._folder}: {error.strerror}.")) from None

    def _acquire_lock(self) -> bool:
        """Lock the backup folder until this process stops. Return False if another process holds the lock."""
        if self._lock is not None:
            return True
        folder.prepare(self._folder)
        lock = descriptors.open_or_create(self._folder / LOCK)
        if not file_locks.acquire(lock, timeout=0):
            os.close(lock)
            return False
        self._lock = lock
        self._publish_damaged()
        return True

    def _seconds_left(self) -> float:
        """Return the seconds until the next backup is due, 0 or less if it is due now."""
        now = self._clock.now()
        self._newest(now, None)  # verify other kinds too: the metrics show the last good backup of any kind
        newest = self._newest(now, folder.SCHEDULED)
        return 0 if newest is None else (newest.at + self._settings.backups.every_hours * HOUR - now) / SECOND

    def _newest(self, now: int, kind: str | None) -> folder.BackupFile | None:
        """Return the newest backup that passes verification, or None. `kind`: only backups of this kind, if given."""
        while (entry := folder.newest(self._folder, now, kind, self._damaged)) is not None:
            mark = folder.file_id(entry.file)
            if mark in self._verified:
                break
            try:
                verify.check(entry.file, self._on_progress)
            except Failure as failure:
                log.warning("ignoring an unusable backup: %s", failure.here)
                self._damaged.add(mark)
                self._publish_damaged()
            else:
                self._verified.add(mark)
        return entry

    def _publish_damaged(self) -> None:
        """Write the file ids of damaged backups into the lock file, where other processes read them."""
        if self._lock is not None:
            lines = "".join(f"{mark}\n" for mark in self._damaged).encode()
            with suppress(OSError):  # a full disk is reported when a backup is made
                os.pwrite(self._lock, lines, 0)
                os.ftruncate(self._lock, len(lines))

    def _make(self) -> None:
        now = self._clock.now()
        target = folder.new_name(self._folder, now, folder.SCHEDULED)
        made = create.create(self._path, target, self._on_progress)
        self._verified.add(folder.file_id(made.file))
        log.info("backed up %s rows to %s", made.facts.rows, made.file)
        for gone in folder.prune(
            self._folder, self._settings.backups.keep, target, now=now, on_progress=self._on_progress
        ):
            log.info("deleted the old backup %s", gone)

    def _on_progress(self, _done: float, _total: float) -> None:
        if self._stopping.is_set():
            raise Abandoned


def create_now(url: str, backup_folder: Path, *, now: int) -> Path:
    """Create and verify a backup on a thread of low priority. Return its file. Raises Failure if another is running."""
    path = create.database_file(url)
    folder.prepare(backup_folder)
    if folder.in_progress(backup_folder):
        raise Failure("A backup is being created. It will be in the list.")
    with ThreadPoolExecutor(1, "backup", initializer=lower_priority) as thread:
        return thread.submit(create.create, path, folder.new_name(backup_folder, now)).result().file


def build(settings: Settings, clock: Clock) -> BackupScheduler | None:
    """Create the backup scheduler. Return None if backups are turned off or the database is PostgreSQL."""
    if settings.backups.every_hours == 0 or path_of(settings.store_url) is None:
        return None
    return BackupScheduler(settings, clock)
