"""The snapshots of a demo: copies of its database, with the time of its clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from musicsvc.errors import Conflict, Failure, NotFound, Unavailable
from musicsvc.store.backups.create import create, overwrite

MOST_SNAPSHOTS = 100
START = ""  # the name of the first one, which is not listed


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of the database. `now`: the time of the demo's clock then."""

    name: str
    now: int
    file: Path


class Snapshots:
    """All snapshots of a demo. Any thread may list them; the caller prevents that two threads change them at once."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._folder = database.parent / "snapshots"
        self._folder.mkdir()
        self._saved: dict[str, Snapshot] = {}
        self._number = 0

    def save(self, name: str, now: int) -> Snapshot:
        """Save the database under this name, in place of an earlier snapshot.

        Raises Conflict if there are too many, or Unavailable, such as on a full disk.
        """
        if name not in self._saved and len(self._saved) > MOST_SNAPSHOTS:
            raise Conflict(f"There are {MOST_SNAPSHOTS} snapshots. Delete some: DELETE /demo/snapshots/{{name}}.")
        self._number += 1
        file = self._folder / f"{self._number}.db"
        try:
            create(self._database, file)
        except Failure as failure:
            raise Unavailable("The snapshot cannot be saved.", failure.here) from None
        before = self._saved.pop(name, None)
        self._saved[name] = saved = Snapshot(name, now, file)
        if before is not None:
            before.file.unlink()
        return saved

    def list(self) -> Sequence[Snapshot]:
        return [snapshot for snapshot in [*self._saved.values()] if snapshot.name != START]

    def restore(self, name: str) -> Snapshot:
        """Restore the database while it is in use. Raises NotFound if there is no such snapshot."""
        saved = self._find(name)
        overwrite(self._database, saved.file)
        return saved

    def delete(self, name: str) -> None:
        """Delete a snapshot. Raises NotFound if there is none with this name."""
        self._find(name).file.unlink()
        del self._saved[name]

    def _find(self, name: str) -> Snapshot:
        if name not in self._saved:
            raise NotFound("There is no such snapshot.")
        return self._saved[name]
