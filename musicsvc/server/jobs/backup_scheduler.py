"""Backups by the clock: one process of the machine makes them, on a thread that stands back."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from musicsvc.clock import SECOND
from musicsvc.errors import Failure
from musicsvc.server.request.executors import stand_back
from musicsvc.store.backups import create, folder, verify
from musicsvc.store.engine.sqlite import file_locks, files

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.config import Settings

log = logging.getLogger("musicsvc")
FIRST_LOOK_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 60.0  # the clock may be set, another process may end
RETRY_SECONDS = 900.0
HOUR = 3_600 * SECOND
LOCK = folder.LOCK


class Abandoned(Exception):
    """The server ends, and the backup under way with it."""


class Schedule:
    """Makes a backup when the last good one is too old, and deletes those that are too many."""

    def __init__(self, settings: Settings, clock: Clock, first_look: float = FIRST_LOOK_SECONDS) -> None:
        """`first_look`: seconds from now."""
        self._settings = settings
        self._clock = clock
        self._path = create.database_file(settings.store_url)
        self._folder = settings.backup_folder
        self._ending = threading.Event()
        self._thread = ThreadPoolExecutor(1, "backups", initializer=stand_back)
        self._under_way: Future[float] | None = None
        self._next = clock.monotonic() + first_look
        self._lead: int | None = None
        self._failure: Failure | None = None
        # Marks of backups that this process has opened, each once: a disk may spoil one after it was made.
        self._sound: set[str] = set()
        self._damaged: set[str] = set()

    async def __call__(self, *, last: bool) -> None:
        """Begin what is due and take note of what is done; at the end, end what is half done.

        Raises Failure when a backup failed, and again until one is made.
        """
        if last:
            await self._end()
            return
        if self._under_way is None:
            if self._clock.monotonic() >= self._next:
                self._under_way = self._thread.submit(self.look)
        elif self._under_way.done():
            done, self._under_way = self._under_way, None
            self._note(done)
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def _note(self, done: Future[float]) -> None:
        self._next = self._clock.monotonic() + RETRY_SECONDS
        try:
            self._next = self._clock.monotonic() + done.result()
        except Failure as failure:
            self._failure = failure
        else:
            if self._lead is not None:  # another process may make them, which says nothing of how it went
                self._failure = None

    async def _end(self) -> None:
        self._ending.set()
        if self._under_way is not None:
            waiting = asyncio.wrap_future(self._under_way)
            await asyncio.wait([waiting], timeout=self._settings.server.shutdown_timeout)
            if waiting.done():
                waiting.exception()
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._lead is not None:
            os.close(self._lead)

    def look(self) -> float:
        """Make the backup that is due; seconds until there is reason to look again. Raises Failure."""
        try:
            return self._look()
        except OSError as error:
            raise Failure(f"{error.filename or self._folder}: {error.strerror}.") from None

    def _look(self) -> float:
        if not self._leads():
            return LONGEST_PAUSE_SECONDS
        pause = self._pause()
        if pause <= 0:
            self._make()
            pause = self._pause()
        return min(max(pause, 1.0), LONGEST_PAUSE_SECONDS)

    def _leads(self) -> bool:
        """Whether this process is the one that makes backups; it is until it ends, then another one."""
        if self._lead is not None:
            return True
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        if not file_locks.acquire(lock, timeout=0):
            os.close(lock)
            return False
        self._lead = lock
        self._tell_damaged()
        return True

    def _pause(self) -> float:
        """Seconds until the last good backup is too old."""
        now = self._clock.now()
        self._newest(now, None)  # for those who ask for the last good one of any kind
        newest = self._newest(now, folder.SCHEDULED)
        return 0 if newest is None else (newest.at + self._settings.backups.every_hours * HOUR - now) / SECOND

    def _newest(self, now: int, kind: str | None) -> folder.Entry | None:
        """The last backup that is good; it was opened, as `doctor` does."""
        while (entry := folder.newest(self._folder, now, kind, self._damaged)) is not None:
            mark = folder.mark(entry.file)
            if mark in self._sound:
                break
            try:
                verify.prove(entry.file, self._told)
            except Failure as failure:
                log.warning("a backup does not count: %s", failure.message)
                self._damaged.add(mark)
                self._tell_damaged()
            else:
                self._sound.add(mark)
        return entry

    def _tell_damaged(self) -> None:
        """Let the processes beside this one know which backups are none."""
        if self._lead is not None:
            told = "".join(f"{mark}\n" for mark in sorted(self._damaged)).encode()
            with suppress(OSError):  # a full disk is told of where a backup is made
                os.pwrite(self._lead, told, 0)
                os.ftruncate(self._lead, len(told))

    def _make(self) -> None:
        now = self._clock.now()
        target = folder.new_name(self._folder, now, folder.SCHEDULED)
        made = create.make(self._path, target, self._told)
        self._sound.add(folder.mark(made.file))
        log.info("backed up %s rows to %s", made.facts.rows, made.file)
        for gone in folder.prune(self._folder, self._settings.backups.keep, target, now=now, told=self._told):
            log.info("deleted the old backup %s", gone)

    def _told(self, _done: float, _total: float) -> None:
        if self._ending.is_set():
            raise Abandoned


def schedule(settings: Settings, clock: Clock) -> Schedule | None:
    """The schedule of the settings, None where there is none: it was turned off, or the database is on PostgreSQL."""
    if settings.backups.every_hours == 0 or files.path_of(settings.store_url) is None:
        return None
    return Schedule(settings, clock)
