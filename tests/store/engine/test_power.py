"""Power failures with concurrent writers: acknowledged writes survive, and none is partial."""

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre
from tests.faults import disk, workload
from tests.faults.power import Power
from tests.faults.workload import Ledger
from tests.support import databases

pytestmark = pytest.mark.only_on("sqlite")

LANES = 12
CALLERS = 6


@contextmanager
def _snapshot(store: Store) -> Iterator[None]:
    """Read for a long time, which prevents a restart of the WAL."""
    release = threading.Event()

    def read() -> None:
        Genre.select().count()
        release.wait(30)

    reading = store.read(read)
    try:
        yield
    finally:
        release.set()
        if not reading.cancel():  # it may wait for a thread, behind reads that began earlier and end later
            reading.exception(60)


class Round:
    """A new database that is used until a power failure."""

    def __init__(self, url: str, chance: Random, *, honest: bool = True) -> None:
        self.file = Path(url.removeprefix("sqlite:///"))
        self._url = url
        self._chance = chance
        self.power = Power(self.file.parent, chance, cut_at=int(chance.triangular(1, 400, 60)), honest=honest)
        self.ledger = Ledger(certain=lambda: not self.power.off)
        self._next = dict.fromkeys(range(LANES), 0)
        self.writers = chance.choice((1, 1, 2))  # as many as processes, each with a store of its own
        # A failed checkpoint does not fail its commit, but a Python VFS would report it so.
        self._checkpoint_every = 0 if self.power.failing else chance.choice((2, 5, 20, 4000))

    def live(self) -> None:
        """Write until the power failure, which also ends the writing process."""
        with disk.mounted(self.file.parent, self.power.fault, self.power):
            while not self.power.off:
                with suppress(Failure), ExitStack() as opened:
                    self._session([opened.enter_context(opening.connect(self._url)) for _ in range(self.writers)])

    def _session(self, stores: Sequence[Store]) -> None:
        """Write until the stores are closed."""
        for store in stores:
            store.write(self._tune).result()
        work = self._callers if self._chance.random() < 0.25 else self._bursts
        work(stores)

    def _tune(self) -> None:
        current().execute_sql(f"PRAGMA wal_autocheckpoint = {self._checkpoint_every}").fetchall()

    def _bursts(self, stores: Sequence[Store]) -> None:
        """Write groups of units. With one store they are the same in every run of the seed."""
        with ExitStack() as reading:
            while not self.power.off and self._chance.random() > 0.03:
                if self._chance.random() < 0.1:
                    reading.enter_context(_snapshot(stores[0]))
                elif self._chance.random() < 0.1:
                    reading.close()
                if self._chance.random() < 0.1:
                    self._checkpoint(self._chance.choice(("PASSIVE", "RESTART", "TRUNCATE")))
                lanes = self._chance.sample(range(LANES), self._chance.randint(1, LANES))
                self._together(stores, [self._name(lane) for lane in lanes])

    def _name(self, lane: int) -> str:
        number = self._next[lane]
        self._next[lane] += 1
        return f"unit/{lane}/{number}"

    def _together(self, stores: Sequence[Store], names: list[str]) -> None:
        """Queue the units while a writer is busy, so that those of each store are committed together."""
        begun, release = threading.Event(), threading.Event()

        def hold() -> None:
            begun.set()
            release.wait(30)

        first = stores[0].write(hold)
        while not (begun.wait(0.01) or first.done()):
            pass
        settle = [self.ledger.submit(stores[at % len(stores)], name) for at, name in enumerate(names)]
        release.set()
        for wait in settle:
            wait()

    def _callers(self, stores: Sequence[Store]) -> None:
        """Write from concurrent callers while another connection checkpoints."""

        def call(lane: int) -> None:
            while not self.power.off:
                self.ledger.submit(stores[lane % len(stores)], self._name(lane))()

        def checkpoint() -> None:
            while not self.power.off:
                self._checkpoint("TRUNCATE")

        threads = [threading.Thread(target=call, args=(lane,)) for lane in range(CALLERS)]
        threads += [threading.Thread(target=checkpoint)] * (self._chance.random() < 0.3)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    def _checkpoint(self, mode: str) -> None:
        """Checkpoint on a separate connection, as another process does."""
        with suppress(apsw.Error):
            connection = apsw.Connection(str(self.file))
            try:
                connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            finally:
                connection.close()

    def faults(self, folder: Path) -> list[str]:
        """Return the faults that the next start finds."""
        folder.mkdir()
        self.power.restore(folder)
        try:
            with opening.connect(f"sqlite:///{folder / self.file.name}") as store:
                found = workload.faults(store, self.ledger)
                store.write(lambda: workload.unit("later/0/0")).result()
        except Failure as failure:
            return [failure.message]
        return found


@pytest.fixture(scope="module")
def filled(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A template database with the rows that units refer to."""
    url = template.make(tmp_path_factory.mktemp("filled"), 0, migrated=True)
    with opening.connect(url) as store:
        store.write(workload.prepare).result()
    return Path(url.removeprefix("sqlite:///"))


def play(filled: Path, folder: Path, chance: Random, *, honest: bool = True) -> tuple[Round, list[str]]:
    """Run one round and return its faults."""
    data = folder / "data"
    data.mkdir()
    shutil.copy(filled, data)
    played = Round(f"sqlite:///{data / filled.name}", chance, honest=honest)
    played.live()
    return played, played.faults(folder / "after")


@pytest.mark.rounds(8, 1_000)
def test_a_power_failure_loses_no_acknowledged_write(
    filled: Path, tmp_path: Path, seed: int, number: int, record_property: Callable[[str, object], None]
) -> None:
    played, faults = play(filled, tmp_path, Random(f"{seed}/{number}"))

    assert faults == [], (
        f"--seed {seed}, {played.writers} writers, {played.power.mood}, sectors of {played.power.sector}"
    )
    record_property("acknowledged", len(played.ledger.acknowledged))


@pytest.mark.slow
@pytest.mark.parametrize("less", ["NORMAL", "OFF", "a disk that lies"])
def test_a_few_rounds_find_settings_that_lose_writes(
    filled: Path, tmp_path: Path, seed: int, less: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Show that a round can fail."""
    honest = less in {"NORMAL", "OFF"}
    if honest:
        monkeypatch.setitem(files.PRAGMAS, "synchronous", less)

    def lost(number: int) -> bool:
        folder = tmp_path / str(number)
        folder.mkdir()
        faults = play(filled, folder, Random(f"{seed}/{number}"), honest=honest)[1]
        return any("was acknowledged, and is lost" in fault for fault in faults)

    assert any(map(lost, range(20)))
