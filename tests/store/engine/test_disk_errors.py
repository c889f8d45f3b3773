"""Disk errors with concurrent writers: acknowledged writes are stored, refused ones are not."""

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.engine import sql
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre
from tests.faults import disk, system, workload
from tests.faults.workload import Ledger
from tests.support import databases

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not system.DESCRIPTORS.exists(), reason="looks at descriptors in /proc"),
]

LANES = 8
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG)


class Failing:
    """Let a number of operations fail from the n-th on, of all kinds or of one."""

    def __init__(self, chance: Random) -> None:
        self.error = chance.choice(ERRORS)
        self.first = int(chance.triangular(1, 250, 40))
        self.last = self.first + chance.choice((0, 0, 3, 30, 10_000))
        self.kinds = chance.choice(({"write"}, {"read"}, {"write", "truncate", "open", "delete"}, {"read", "write"}))
        self.operations = 0

    def __call__(self, operation: str, file: str) -> int:  # noqa: ARG002 - a Fault
        if operation not in self.kinds:
            return 0
        self.operations += 1
        return self.error if self.first <= self.operations <= self.last else 0

    def __repr__(self) -> str:
        return f"{os.strerror(self.error)} on {self.kinds}, {self.first} to {self.last}"


def test_a_disk_that_cannot_be_read_is_reported_when_changes_are_looked_for(store_url: str) -> None:
    path = Path(store_url.removeprefix("sqlite:///"))
    fails = False

    def fault(operation: str, file: str) -> None:
        if fails and operation == "read" and file.startswith(path.name):
            raise disk.error(apsw.SQLITE_IOERR)

    with disk.mounted(path.parent, fault), opening.connect(store_url) as store:
        before = store.table_versions()
        store.write(lambda: Genre.create(name="new", display_name="New").id).result()
        fails = True
        with pytest.raises(files.DiskFault) as failure:
            store.table_versions()
        assert str(path) in failure.value.here
        fails = False
        assert store.table_versions() != before


def _session(stores: Sequence[Store], chance: Random, ledger: Ledger, session: int) -> None:
    """Write a few groups of units, with concurrent readers."""
    every = chance.choice((3, 20, 4000))
    tune = f"PRAGMA wal_autocheckpoint = {every}"
    for store in stores:
        store.write(lambda: sql.current().execute_sql(tune) and None).exception(10)
    for number in range(8):
        reading = stores[0].read(lambda: Genre.select().count())
        names = [f"{session}/{lane}/{number}" for lane in range(LANES)]
        for settle in [ledger.submit(stores[lane % len(stores)], name) for lane, name in enumerate(names)]:
            settle()
        error = reading.exception(10)
        assert error is None or isinstance(error, workload.REFUSALS), repr(error)


@pytest.mark.rounds(12, 500)
@pytest.mark.slow
def test_a_disk_error_only_refuses_writes(template: databases.Template, tmp_path: Path, seed: int, number: int) -> None:
    chance, ledger = Random(f"{seed}/{number}"), Ledger()
    writers = chance.choice((1, 1, 2))  # as many as processes, each with a store of its own
    url = template.make(tmp_path, 0, migrated=True)
    with opening.connect(url) as store:
        store.write(workload.prepare).result()
    failing = Failing(chance)
    with system.calls(Path(url.removeprefix("sqlite:///")).parent) as calls:
        calls.fault = failing
        for session in range(2):
            with ExitStack() as opened:
                try:
                    stores = [opened.enter_context(opening.connect(url)) for _ in range(writers)]
                except Failure as failure:
                    assert "\n" not in failure.message  # noqa: PT017 - any error is one line
                    continue
                _session(stores, chance, ledger, session)
                calls.fault = system.no_fault
                assert workload.faults(stores[-1], ledger) == [], f"--seed {seed}: {failing}"
                _session(stores, chance, ledger, session + 10)
                assert workload.faults(stores[-1], ledger) == [], f"--seed {seed}: {failing}"
                calls.fault = failing
    with opening.connect(url) as store:
        assert workload.faults(store, ledger) == [], f"--seed {seed}: {failing}"
