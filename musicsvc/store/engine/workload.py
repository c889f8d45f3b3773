"""How busy a store is and what it takes on disk, without asking the database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SQLITE = "sqlite:///"


@dataclass(slots=True)
class Workload:
    """What a store has done so far; `seconds` were spent in commits, each of which may hold several units."""

    commits: int = 0
    units: int = 0
    seconds: float = 0.0

    def note(self, units: int, seconds: float) -> None:
        """Add a commit; on one thread at a time."""
        self.commits += 1
        self.units += units
        self.seconds += seconds


def database_bytes(url: str) -> int | None:
    """The size of the database's file; None where it is no file of this machine's."""
    return Path(url.removeprefix(SQLITE)).stat().st_size if url.startswith(SQLITE) else None


def log_bytes(url: str) -> int | None:
    """What is committed and not in the database's file yet (the WAL); None where it is no file of this machine's."""
    if not url.startswith(SQLITE):
        return None
    wal = Path(f"{url.removeprefix(SQLITE)}-wal")
    return wal.stat().st_size if wal.exists() else 0
