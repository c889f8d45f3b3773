"""An open SQLite database cannot be replaced or migrated, and the other way round."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.store import Store
from musicsvc.store.schema import history, schema
from tests.support import upgrades
from tests.support.program import until

pytestmark = pytest.mark.only_on("sqlite")
HOLD = "import sys; from musicsvc.store import opening; s = opening.connect(sys.argv[1]); print(1, flush=True); input()"


def _is_free(file: Path) -> bool:
    try:
        with file_locks.exclusive(file, timeout=0):
            return True
    except Failure:
        return False


def test_shared_locks_coexist_and_prevent_an_exclusive_one(file: Path) -> None:
    first, second = file_locks.use(file), file_locks.use(file)
    assert not _is_free(file)
    first.release()
    first.release()
    assert not _is_free(file)
    second.release()
    assert _is_free(file)


def test_a_killed_process_releases_its_lock(store_url: str, file: Path) -> None:
    command = [sys.executable, "-c", HOLD, store_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not _is_free(file)
        process.send_signal(signal.SIGKILL)
        process.wait()
    until(lambda: _is_free(file))


def test_a_forked_child_does_not_release_the_lock_of_its_parent(file: Path) -> None:
    held = file_locks.use(file)
    held._process = os.getpid() + 1  # as it is in a child
    descriptor = held._descriptor
    assert descriptor is not None
    copy = os.dup(descriptor)  # as the parent has it
    held.release()
    assert not _is_free(file)
    os.close(copy)
    assert _is_free(file)


def test_a_store_opens_if_the_lock_file_cannot_be_created(store_url: str, file: Path) -> None:
    file_locks.lock_file(file).mkdir()
    with opening.connect(store_url) as store:
        assert [*store.read(schema.applied).result()] == history.available()


def test_a_migration_is_refused_while_a_server_runs(store: Store, store_url: str, tmp_path: Path) -> None:
    folder = upgrades.make_next(tmp_path / "next")

    with pytest.raises(Failure, match=r"is in use by a server or another command\. Stop it"):
        schema.upgrade(store_url, folder=folder)
    assert [*store.read(schema.applied).result()] == history.available()
    store.close()
    assert schema.upgrade(store_url, folder=folder) == [*upgrades.NEXT]
