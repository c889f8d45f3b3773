"""A copy that is killed (kill -9) at any moment is never used half done, and the same command finishes it."""

import json
import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import DroppedPlay, Listener, User
from tests.support import databases, every_table
from tests.support.program import Program, run

MANY = 12_000  # rows, which are copied in several transactions


@databases.prefilling
def prefilled(store: Store) -> None:
    """A database with rows in every table, and many in some."""

    def fill() -> None:
        every_table.fill()
        bulk.insert(Listener, ["id", "key"], [(1_000 + n, f"opaque:many {n}") for n in range(MANY)])
        rows = [(n.to_bytes(16), n, 1, None) for n in range(MANY)]
        bulk.insert(DroppedPlay, ["client_key", "slot", "listener", "names_hash"], rows)

    store.write(fill).result()


@pytest.mark.slow
def test_a_copy_killed_at_any_moment_is_finished_by_the_next(
    prefilled: databases.Filled[None],  # noqa: ARG001 - `store_url` is a copy of it
    store_url: str,
    template: databases.Template,
    tmp_path: Path,
    seed: int,
    *,
    long: bool,
) -> None:
    every_table.fill_log(store_url)
    chance, killed, rounds = Random(seed), 0, 50 if long else 4
    began = time.monotonic()
    _copy(store_url, f"sqlite:///{tmp_path / 'whole.db'}")
    seconds = time.monotonic() - began
    (tmp_path / "made").mkdir()
    with databases.Maker(template, tmp_path / "made") as maker:
        for number in range(rounds):
            source, target = store_url, f"sqlite:///{tmp_path / str(number) / 'copy.db'}"
            if number % 2:  # to the kind of the run
                source, target = f"sqlite:///{tmp_path / 'whole.db'}", maker.make(migrated=False)
            killed += _kill(tmp_path, source, target, (number + chance.random()) / rounds * seconds)
            complete = _is_complete(target)
            if not complete:
                _copy(source, target)
            compared = run("db", "compare", source, target)
            assert compared.returncode == 0, (number, complete, compared)
    assert killed


def _copy(source: str, target: str) -> None:
    done = run("db", "copy", source, target, "--json")
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["complete"], done


def _kill(folder: Path, source: str, target: str, seconds: float) -> bool:
    """Copy, and kill the process after this time. Return whether it was still running."""
    with Program(folder, "db", "copy", source, target) as program:
        try:
            program.process.wait(seconds)
        except subprocess.TimeoutExpired:
            program.end(signal.SIGKILL)
            return True
    return False


def _is_complete(target: str) -> bool:
    """Return whether the target has rows that can be used: those of a complete copy."""
    try:
        with opening.connect(target) as store:
            return store.read(lambda: User.select().count()).result() > 0
    except Failure as failure:
        reason = failure.message
    assert any(text in reason for text in ("unfinished copy", "no tables", "no database", "older schema")), reason
    return False
