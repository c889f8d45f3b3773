"""kill -9 of the server with concurrent clients: acknowledged writes persist, and no write is partial."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import callers
from tests.faults.callers import Account, Caller, Connection
from tests.support.program import Program, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]

CALLERS = 8
KILLS = 10  # for one database
STARTING = 1  # one server in five may be killed before its first answer


def acknowledged(those: Sequence[Caller]) -> int:
    """Count the acknowledged writes of these clients."""
    return sum(effect.acknowledged for caller in those for effect in tuple(caller.effects))


class Life:
    """One database, and the servers on it that are killed."""

    def __init__(self, folder: Path, url: str, chance: Random) -> None:
        self._folder, self._url, self._chance = folder, url, chance
        with opening.connect(url) as store:
            self._accounts: list[Account] = store.write(lambda: callers.prepare(CALLERS, Clock().now())).result()
        self._states: list[dict[callers.Toggled, set[bool]]] = [{} for _ in range(CALLERS)]
        self.everybody: list[Caller] = []

    def kill(self, turn: int) -> list[Caller]:
        """Start a server, send it requests for a while and kill it; return the clients.

        Every other server has two workers, and one of them may be killed before.
        """
        workers = 2 - turn % 2
        with Program(self._folder, "serve", "--port", "0", "--workers", str(workers)) as program:
            port = int(program.root.rpartition(":")[2])
            gone = threading.Event()
            those = [Caller(at, self._accounts[at], str(turn), self._states[at]) for at in range(CALLERS)]
            threads = [threading.Thread(target=caller.work, args=(Connection(port), gone)) for caller in those]
            for thread in threads:
                thread.start()
            if turn % 5 != STARTING:
                until(lambda: acknowledged(those))
            time.sleep(self._chance.uniform(0.05, 0.8))
            if workers > 1 and self._chance.random() < 0.5:
                until(lambda: program.workers)
                os.kill(self._chance.choice(program.workers), signal.SIGKILL)
                time.sleep(self._chance.uniform(0, 0.4))
            os.killpg(program.process.pid, signal.SIGKILL)
            gone.set()
            for thread in threads:
                thread.join(30)
        self.everybody += those
        return those

    def faults(self, those: list[Caller]) -> list[str]:
        """Return the faults in the data written by these clients."""
        with opening.connect(self._url) as store:
            return callers.faults(store, those)


@pytest.mark.on_both
@pytest.mark.rounds(1, 20)
def test_a_killed_server_has_lost_nothing_that_it_acknowledged(
    tmp_path: Path,
    store_url: str,
    seed: int,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    *,
    long: bool,
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    life = Life(tmp_path, store_url, Random(f"{seed}/{number}"))
    for turn in range(KILLS if long else 2):
        those = life.kill(turn)
        assert life.faults(those) == [], f"--seed {seed}"

    assert life.faults(life.everybody) == [], f"--seed {seed}"
    record_property("acknowledged", acknowledged(life.everybody))
