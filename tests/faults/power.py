"""The contents of a disk after a power cut: all synced data, and a random part of the rest."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw

from tests.faults import disk

FATES = ("kept", "dropped", "torn", "garbage")
# How a power failure treats unsynced data; each round draws one.
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
    """A file: its durable content, None if it does not exist, and the changes since."""

    content: bytearray | None = None
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # (offset, bytes) or (size, None)
    doomed: bool = False  # deleted, but not yet durably


class Power:
    """Records the files of a disk, and cuts the power before the `cut_at`-th change."""

    def __init__(self, folder: Path, chance: Random, cut_at: int, *, honest: bool = True) -> None:
        """Take the moment of the failure; `honest`: a sync makes data durable."""
        self._chance = chance
        self._cut_at = cut_at
        self._honest = honest
        self._folder = folder
        self.failing = chance.choice((0, 0, 0, 0.02, 0.1))  # the share of failing syncs
        self.mood = chance.choice(list(MOODS))
        self.sector = chance.choice((512, 4096))
        self.changes = 0
        self.off = False
        self.done: dict[str, int] = {}
        self.leaves = {str(path): Leaf(bytearray(path.read_bytes())) for path in folder.iterdir() if path.is_file()}

    def fault(self, operation: str, file: str) -> None:
        """Count the changes of the disk; after the power failure every operation fails."""
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
        """Fail a sync once: the system drops the unwritten data and reports it only this time."""
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
        """Write the surviving files to another folder. The WAL index exists or not, and is invalid."""
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
        """Write sector by sector; a partial write changes nothing outside its range."""
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
