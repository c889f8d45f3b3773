"""The contents of a disk after a power cut: all synced data, and a random part of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw

from tests.faults import disk

FATES = ("kept", "dropped", "torn", "garbage")
# How a cut treats what was not synced; each round draws one.
MOODS = {
    "all lost": (0, 1, 0, 0),
    "all kept": (1, 0, 0, 0),
    "any": (5, 5, 1, 1),
    "most lost": (1, 8, 1, 0),
    "most kept": (8, 1, 1, 0),
    "torn": (1, 1, 4, 2),
}


@dataclass
class Leaf:
    """One file: what is on the disk of it, and what was done since; `content` None: there is no file."""

    content: bytearray | None = None
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # (offset, bytes); (size, None): cut to it
    doomed: bool = False  # deleted, which is not on the disk yet


class Power:
    """Follows the files of a disk, and cuts the power before its `cut_at`-th change."""

    def __init__(self, folder: Path, chance: Random, cut_at: int, *, honest: bool = True) -> None:
        """`honest`: whether a sync makes anything durable; a disk that lies is what the harness is tried with."""
        self._chance = chance
        self._cut_at = cut_at
        self._honest = honest
        self._folder = folder
        self.failing = chance.choice((0, 0, 0, 0.02, 0.1))  # of the syncs
        self.mood = chance.choice(list(MOODS))
        self.sector = chance.choice((512, 4096))
        self.changes = 0
        self.off = False
        self.done: dict[str, int] = {}
        self.leaves = {str(path): Leaf(bytearray(path.read_bytes())) for path in folder.iterdir() if path.is_file()}

    def fault(self, operation: str, file: str) -> None:
        """Count what changes the disk; once the power is cut, nothing is answered any more."""
        if not self.off and operation not in {"read", "open"}:
            self.changes += 1
            self.done[operation] = self.done.get(operation, 0) + 1
            self.off = self.changes >= self._cut_at
        if self.off:
            raise disk.error(apsw.SQLITE_IOERR)
        if operation == "sync" and self._chance.random() < self.failing:
            self._fail(self.leaves[f"{self._folder}/{file}"])
            raise disk.error(apsw.SQLITE_IOERR_FSYNC)

    def _fail(self, leaf: Leaf) -> None:
        """A sync that failed: the system has forgotten what it did not write, and says so this once."""
        content = self._survivor(leaf)
        leaf.content, leaf.pending = None if content is None else bytearray(content), []

    def opened(self, path: str) -> None:
        if path not in self.leaves:
            self.leaves[path] = Leaf()
        leaf = self.leaves[path]
        if leaf.doomed:  # created again before its deletion was on the disk: old contents may reappear in part
            leaf.doomed = False
            leaf.pending.append((0, None))

    def written(self, path: str, at: int, data: bytes) -> None:
        self.leaves[path].pending.append((at, data))

    def truncated(self, path: str, size: int) -> None:
        self.leaves[path].pending.append((size, None))

    def synced(self, path: str) -> None:
        leaf = self.leaves[path]
        if not self._honest:
            return
        if leaf.content is None:
            leaf.content = bytearray()
        for at, data in leaf.pending:
            _apply(leaf.content, at, data)
        leaf.pending = []

    def deleted(self, path: str, *, synced: bool) -> None:
        leaf = self.leaves[path]
        leaf.doomed = True
        if synced:
            leaf.content, leaf.pending = None, []

    def restore(self, folder: Path) -> None:
        """Put what the next start finds into another folder. The index of the WAL is there or not, and worthless."""
        for path, leaf in sorted(self.leaves.items()):
            survivor = self._survivor(leaf)
            if survivor is not None:
                (folder / Path(path).name).write_bytes(survivor)
            if path.endswith("-wal") and self._chance.random() < 0.5:
                rubbish = self._chance.randbytes(self._chance.choice((0, 100, 32_768)))
                (folder / Path(path).name.replace("-wal", "-shm")).write_bytes(rubbish)

    def _survivor(self, leaf: Leaf) -> bytes | None:
        if leaf.doomed and self._chance.random() < 0.5:
            return None
        if leaf.content is None and (not leaf.pending or self._chance.random() < 0.3):
            return None
        content = bytearray(leaf.content or b"")
        for at, data in leaf.pending:
            if data is not None:
                self._write(content, at, data)
            elif self._fate() == "kept":
                _apply(content, at, None)
        return bytes(content)

    def _write(self, content: bytearray, at: int, data: bytes) -> None:
        """Sector by sector; a write that was cut off changes nothing outside of itself."""
        begin = 0
        while begin < len(data):
            end = min(len(data), begin + self.sector - (at + begin) % self.sector)
            piece = data[begin:end]
            fate = self._fate()
            if fate == "torn":
                piece = piece[: self._chance.randrange(len(piece) + 1)]
            elif fate == "garbage":
                piece = self._chance.randbytes(len(piece))
            if fate != "dropped" and piece:
                _apply(content, at + begin, piece)
            begin = end

    def _fate(self) -> str:
        return self._chance.choices(FATES, MOODS[self.mood])[0]


def _apply(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        return
    if len(content) < at:
        content.extend(bytes(at - len(content)))
    content[at : at + len(data)] = data
