"""Dumps, killed before each of their steps: `python -m tests.cli.killed_dumps FOLDER EVERY`.

The folder has the dump `before`, and the dump `after` of the database as it is now. Prints at how many steps a dump was
killed, and at how many of them it was about to replace its files.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb  # noqa: F401 - for all dumps

from musicsvc.cli import later
from musicsvc.cli.main import command
from tests.faults import killing
from tests.support import dumps
from tests.support.command import run_in_process

NEVER = 1 << 40  # the number of a step


def main(given: str, every: str) -> None:
    """Kill dumps until one finishes. Each finds imported here what the command imports."""
    assert [*command().commands.values()]
    later.execute_all()
    folder = Path(given)
    place = folder / "killed"
    killed = replacing = 0
    for step in killing.rounds(int(every)):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / "before", place)

        def dump(_count: Callable[[], None]) -> None:
            done = run_in_process(["plays", "dump", "--output", str(place)])
            assert done.returncode == 0, done

        if not killing.killed_before(step, dump):
            break
        killed += 1
        if (place / "manifest.json").exists():
            require_named(place)
        else:
            replacing += 1
        assert not killing.killed_before(NEVER, dump)
        dumps.require_valid(place)
        assert dumps.files(place) == dumps.files(folder / "after")
    print(killed, replacing)  # noqa: T201 - the result of the script


def require_named(folder: Path) -> None:
    """Compare the files that the manifest names with it; others may be there."""
    for each in dumps.manifest(folder)["files"]:
        assert hashlib.sha256((folder / each["path"]).read_bytes()).hexdigest() == each["sha256"], each


if __name__ == "__main__":
    main(*sys.argv[1:])
