"""Upgrades of an old database, killed before each of their steps.

`python -m tests.store.schema.killed_migrating FOLDER EVERY` prints the number of steps at which an upgrade was killed.
"""

import shutil
import sys
from pathlib import Path

from musicsvc.store import opening
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sql import fetch
from musicsvc.store.schema import history, schema
from tests.faults import killing
from tests.support import old_databases, upgrades


class Scene:
    """An old database whose upgrade is killed repeatedly."""

    def __init__(self, folder: Path) -> None:
        self._origin = folder / "origin"
        self._migrations = upgrades.make_next(folder / "next")
        old_databases.make(self._origin / "musicsvc.db")
        self._columns = old_databases.columns(self._origin / "musicsvc.db")
        self._rows = old_databases.rows(self._origin / "musicsvc.db", self._columns)
        self._data = folder / "data"
        self._path = self._data / "musicsvc.db"
        self._url = f"sqlite:///{self._path}"

    def killed_before(self, step: int) -> bool:
        """Kill the upgrade, check the result, and finish the upgrade. Return whether it was killed."""
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.copytree(self._origin, self._data)
        killed = killing.killed_before(step, lambda _count: self._upgrade())
        self._check(step)
        self._upgrade()
        assert self._problems() == [], step
        assert old_databases.rows(self._path, self._columns) == self._rows, step
        self._check_backups(step)
        return killed

    def _upgrade(self) -> None:
        schema.upgrade(self._url, self._save, folder=self._migrations)

    def _save(self, first: str) -> None:
        create.create(self._path, backup_folder.new_name(self._data, 0, f"before-{first}"))

    def _check(self, step: int) -> None:
        """Check that a number of migrations is complete, the next one has no effect, and no row has changed."""
        with opening.open_unchecked(self._url) as store:
            have = [*store.read(schema.applied).result()]
        assert have == history.available(self._migrations)[: len(have)], step
        assert have[: len(history.available())] == history.available(), step
        assert old_databases.rows(self._path, self._columns) == self._rows, step

    def _problems(self) -> list[str]:
        with opening.connect(self._url, self._migrations) as store:
            assert len(store.read(lambda: fetch(upgrades.MOODS)).result()) == len(self._rows["track"])
            return store.read(schema.damage).result()

    def _check_backups(self, step: int) -> None:
        made = backup_folder.entries(self._data)
        assert made, step
        for entry in made:
            assert history.missing(verify.check(entry.file).migrations, self._migrations), step
        assert old_databases.rows(made[-1].file, self._columns) == self._rows, step


def main(folder: str, every: str) -> None:
    """Kill upgrades until one finishes."""
    scene = Scene(Path(folder))
    killed = 0
    for step in killing.rounds(int(every)):
        if not scene.killed_before(step):
            break
        killed += 1
    print(killed)  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(*sys.argv[1:])
