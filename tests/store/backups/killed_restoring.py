"""Restores, killed before each of their steps: `python -m tests.store.backups.killed_restoring FOLDER EVERY`.

FOLDER holds `new.db`, a backup, and `old-KIND`, data folders as they are before, for some kinds of state. Prints each
kind, and at how many steps its restore was killed.
"""

import shutil
import sys
from pathlib import Path

import apsw

from musicsvc.clock import SECOND, parse
from musicsvc.store.backups import restore as restore_backup
from musicsvc.store.backups import verify
from musicsvc.store.engine.sqlite import files
from tests.faults import killing

NOW = parse("2026-03-01T12:00:00Z")


def names(path: Path) -> set[str]:
    """The tags of a database."""
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return {str(name) for (name,) in connection.execute("SELECT name FROM tag")}
    finally:
        connection.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


class Scene:
    """A database whose restore is killed repeatedly."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._old = folder / f"old-{kind}"
        self._data = folder / "data"
        self._path = self._data / "musicsvc.db"
        self._new = folder / "new.db"
        self._before = contents(self._old)

    def restore(self, now: int = NOW) -> None:
        restore_backup.restore(self._new, self._path, now=now)

    def killed_before(self, step: int) -> bool:
        """Kill the restore, check the result, and restore again. Return whether it was killed."""
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.copytree(self._old, self._data)
        killed = killing.killed_before(step, lambda _count: self.restore())
        self._check()
        self.restore(NOW + SECOND)
        assert names(self._path) == {"new"}, step
        self._check_kept()
        assert not [file.name for file in self._data.iterdir() if file.name.startswith(".")]
        return killed

    def _check(self) -> None:
        """Check that the database is the complete old or new one."""
        if self._kind == "missing":
            assert not self._path.exists() or names(self._path) == {"new"}
        elif self._kind == "damaged":
            if self._path.read_bytes() != self._before["musicsvc.db"]:
                assert names(self._path) == {"new"}
            self._check_kept()
        else:
            # A copy, so that stale files beside the database remain for the next restore.
            copy = self._folder / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self._data, copy)
            files.examine(copy / "musicsvc.db")
            assert names(copy / "musicsvc.db") in ({"old", "late"}, {"new"})

    def _check_kept(self) -> None:
        """Check that the old database still exists, under either name."""
        if self._kind == "damaged":
            now = list(contents(self._data).values())
            assert all(part in now for name, part in self._before.items() if not name.endswith("-shm"))
        elif self._kind != "missing":
            kept = [file for file in self._data.iterdir() if "-before-restore-" in file.name]
            assert {"old", "late"} in [names(file) for file in kept]
            for file in kept:
                assert verify.check(file).rows


def main(folder: str, every: str) -> None:
    """Kill restores of each kind until one finishes."""
    for old in sorted(Path(folder).glob("old-*")):
        kind = old.name.removeprefix("old-")
        scene = Scene(Path(folder), kind)
        killed = 0
        for step in killing.rounds(int(every)):
            if not scene.killed_before(step):
                break
            killed += 1
        print(kind, killed, flush=True)  # noqa: T201 - the result of the script; a child must not have it buffered


if __name__ == "__main__":
    main(*sys.argv[1:])
