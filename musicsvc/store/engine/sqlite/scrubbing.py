"""Overwrite what is left of erased rows in a SQLite file, while other processes use the database.

SQLite overwrites deleted rows itself (`secure_delete`), but pages may have older copies of a row: those that were moved
to another page, and those of rows that were deleted before `secure_delete` was set. They are in bytes of the file that
SQLite does not read: between and before the rows of a page, and in free pages. These bytes are overwritten directly,
a slice of pages at a time. Meanwhile nobody can write, all commits are in the file, and a commit of our own then makes
all connections forget the pages that they keep in memory. Finally the write-ahead log (WAL) is emptied.

Before all that, indexes of names are merged, which keep parts of deleted names until then.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path

import apsw

log = logging.getLogger("musicsvc")
FREE_LIST = 32  # the position in the file of the number of the first page that lists free pages
TABLE_LEAF, INDEX_LEAF, TABLE_INNER, INDEX_INNER = 13, 10, 5, 2
HEADERS = {TABLE_LEAF: 8, INDEX_LEAF: 8, TABLE_INNER: 12, INDEX_INNER: 12}
# The first byte of a page that continues a long row is that of a page number. Up to this number it is no type of pages.
MOST_PAGES = INDEX_INNER << 24
SLICE = 512  # pages, overwritten in about 10 ms
PASSES = 2  # rows that others move during the first one
ATTEMPT_SECONDS = 0.1  # for which others wait before the next attempt, if they read older commits
PAUSE_SECONDS = 0.05
# Of what people name. Those of albums and tracks, of which there may be millions, SQLite merges as they grow.
NAME_INDEXES = "SELECT name FROM sqlite_schema WHERE name IN ('account_search', 'artist_search', 'playlist_search')"
MERGE = "INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)"
MERGED_PAGES, MERGE_ENDS = 64, 2  # pages of an index that a step merges; the changes of a step without work are fewer
WRITER_MILLISECONDS, READERS_MILLISECONDS = 5000, 100  # to wait for other writers, and for readers while none can write

Range = tuple[int, int]  # of bytes: the first one, and the one after the last


class Scrubbing:
    """Overwrites what is left of deleted rows in a file, on a thread of its own, each time that this is requested."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(1, "store-scrub")
        self._last: Future[bool] | None = None

    def request(self) -> None:
        """Begin soon. Call this after the commit of a transaction that erases rows."""
        self._last = self._pool.submit(self._scrub)

    def wait(self, seconds: float) -> bool:
        """Wait until all that was requested is done. Return False if it takes longer, or failed."""
        try:
            return self._last is None or self._last.result(seconds)
        except NotYet:
            return False

    def close(self) -> None:
        """Stop. What is left stays until the next request."""
        self._stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _scrub(self) -> bool:
        try:
            return scrub(self._path, self._stopping.is_set)
        except apsw.Error as error:
            log.warning("erased data may be left in %s: %s", self._path, error)
            return False


def scrub(path: Path, is_stopping: Callable[[], bool]) -> bool:
    """Overwrite what is left of deleted rows, and empty the WAL. Return False if `is_stopping` became true before.

    Waits for transactions that read what was there before. Raises apsw.Error.
    """
    scrubber = _Scrubber(path, is_stopping)
    try:
        return scrubber.run()
    finally:
        scrubber.close()


class _Scrubber:
    def __init__(self, path: Path, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping
        self._writer, self._checkpointer = (
            apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE) for _ in range(2)
        )
        self._writer.set_busy_timeout(WRITER_MILLISECONDS)
        self._checkpointer.set_busy_timeout(READERS_MILLISECONDS)
        # Without having read the file, a connection does not know of its WAL, and copies nothing.
        for each in (self._writer, self._checkpointer):
            each.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        self._size = int(self._writer.pragma("page_size"))
        # Through SQLite, which does not lose the locks of this process when it closes the file.
        self._file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])

    def close(self) -> None:
        self._file.xClose()
        self._checkpointer.close()
        self._writer.close()

    def run(self) -> bool:
        for (index,) in self._writer.execute(NAME_INDEXES).fetchall():
            if not self._merge(index):
                return False
        for _ in range(PASSES):
            first = 2  # the first page has the schema
            while first <= min(self._pages(), MOST_PAGES):
                if self._is_stopping():
                    return False
                slice_ = range(first, min(first + SLICE, self._pages() + 1))
                if not any(self._leftovers(slice_)) or self._overwrite(slice_):
                    first += SLICE
                else:
                    time.sleep(PAUSE_SECONDS)
        while not self._empty_wal():
            if self._is_stopping():
                return False
            time.sleep(PAUSE_SECONDS)
        return True

    def _merge(self, index: object) -> bool:
        """Merge all parts of an index of names into one. Return False if the store stops."""
        pages = -MERGED_PAGES  # negative: begin with all parts
        while not self._is_stopping():
            before = self._writer.total_changes()
            try:
                self._writer.execute(MERGE.format(index=index), (pages,))
            except apsw.BusyError:
                continue
            if self._writer.total_changes() - before < MERGE_ENDS:
                return True
            pages = MERGED_PAGES
        return False

    def _pages(self) -> int:
        return self._file.xFileSize() // self._size

    def _overwrite(self, pages: range) -> bool:
        """Overwrite what is left on these pages. Return False if others write, or still read an older commit."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        try:
            if not self._all_in_file():
                return False
            for first, end in self._leftovers(pages):
                self._file.xWrite(bytes(end - first), first)
            self._file.xSync(apsw.SQLITE_SYNC_NORMAL)
            self._writer.pragma("user_version", self._writer.pragma("user_version"))
            self._writer.execute("COMMIT")
            return True
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _all_in_file(self) -> bool:
        """Copy all commits from the WAL to the file, while nobody writes. Return whether that was possible."""
        deadline = time.monotonic() + ATTEMPT_SECONDS
        while True:
            try:
                logged, copied = self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if 0 <= logged == copied:
                    return True
            except apsw.BusyError:  # another connection copies
                pass
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE_SECONDS / 10)

    def _empty_wal(self) -> bool:
        try:
            logged, _ = self._checkpointer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        return logged == 0

    def _leftovers(self, pages: range) -> Iterator[Range]:
        """Yield the ranges of bytes of the file that have something left of former rows."""
        free = self._free_pages()
        read = self._file.xRead(len(pages) * self._size, (pages.start - 1) * self._size)
        for place, number in enumerate(pages):
            page = read[place * self._size : (place + 1) * self._size]
            if len(page) == self._size:
                begin = (number - 1) * self._size
                unused = [(free[number], self._size)] if number in free else unused_ranges(page)
                yield from ((begin + first, begin + end) for first, end in unused if any_byte(page[first:end]))

    def _free_pages(self) -> dict[int, int]:
        """Map the free pages to their first byte that SQLite does not read."""
        found: dict[int, int] = {}
        trunk = int.from_bytes(self._file.xRead(4, FREE_LIST), "big")
        while trunk and trunk not in found:
            page = self._file.xRead(self._size, (trunk - 1) * self._size)
            following, count = (int.from_bytes(page[at : at + 4], "big") for at in (0, 4))
            end = min(8 + 4 * count, self._size)
            found[trunk] = end
            found.update((int.from_bytes(page[at : at + 4], "big"), 0) for at in range(8, end, 4))
            trunk = following
        return found


def any_byte(some: bytes) -> bool:
    """Return whether there is a byte other than zero."""
    return some.count(0) < len(some)


def unused_ranges(page: bytes) -> list[Range]:
    """Return the ranges of bytes of a page of rows that SQLite does not read: before the rows, and between them.

    Other pages, and pages that do not have the expected form, have none.
    """
    header = HEADERS.get(page[0])
    if header is None:
        return []
    freed, rows, content = (int.from_bytes(page[at : at + 2], "big") for at in (1, 3, 5))
    before = header + 2 * rows, content or len(page)
    found = [before]
    while freed:
        following, size = (int.from_bytes(page[at : at + 2], "big") for at in (freed, freed + 2))
        found.append((freed + 4, freed + size))
        if following and following < freed + max(size, 4):
            return []
        freed = following
    return found if before[0] <= before[1] <= found[-1][1] <= len(page) else []
