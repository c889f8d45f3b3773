"""A file of rate limit counts that is found damaged while another process still has it open."""

import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc.store.rate_limits import sqlite
from musicsvc.store.rate_limits.window import Hit
from tests.store.rate_limits.test_sqlite import LIMIT, left, opened

pytestmark = pytest.mark.only_on("sqlite")
HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute(f"PRAGMA user_version = {sys.argv[2]}")  # writes the first page to the WAL
print("open", flush=True)
sys.stdin.read()
"""


def test_a_damaged_file_is_replaced_while_another_process_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "limits.db"
    with opened(path) as counter:
        for number in range(200):
            counter.count([Hit(LIMIT, str(number))])
    whole, line = path.read_bytes(), [sys.executable, "-c", HOLD, str(path), str(sqlite.VERSION)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        path.write_bytes(whole[: sqlite.PAGE_BYTES] + b"\xff" * (len(whole) - sqlite.PAGE_BYTES))
        with opened(path) as counter:
            assert left(counter) == 999
        other.communicate()
