"""Another process that holds the write lock of a SQLite database."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE; INSERT INTO tag (name) VALUES ('theirs')")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


@contextmanager
def locked(file: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock until the yielded function is called or the block ends."""
    command = [sys.executable, "-c", LOCK, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"

        def release() -> None:
            process.communicate("\n", timeout=60)

        yield release
        if process.poll() is None:
            release()
