"""Backups, killed before each of their steps: `python -m tests.store.backups.killed_backups DATABASE FOLDER EVERY`.

Prints at how many steps one was killed.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from tests.faults import killing


def main(database: str, folder: str, every: str) -> None:
    """Kill backups until one finishes."""
    path, place = Path(database), Path(folder) / "killed"
    killed = 0
    for step in killing.rounds(int(every)):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()

        def back_up(count: Callable[[], None], place: Path = place) -> None:
            create.create(path, backup_folder.new_name(place, 0), lambda _done, _total: count())

        if not killing.killed_before(step, back_up):
            break
        for entry in backup_folder.entries(place):
            assert verify.check(entry.file).rows
        made = create.create(path, backup_folder.new_name(place, 0))
        assert {file.name for file in place.iterdir()} >= {made.file.name}
        assert not [file for file in place.iterdir() if file.name.startswith(".")]
        killed += 1
    print(killed)  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(*sys.argv[1:])
