"""Stopping an import of the command line while one of its threads keeps the lock of the interpreter."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.faults.stuck import Stuck
from tests.support.program import Program, until

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]  # the threads are the same over either
ROWS = 100_000  # take longer than it takes to send a signal
KILLED = (
    "Error: The command did not stop within 5 s; killed."
    " Run the same command again to continue; imported rows are not added twice.\n"
)


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    file = tmp_path / "songs.csv"
    file.write_text("track;artist\n" + "".join(f"S{number};A{number % 97}\n" for number in range(ROWS)))
    return file


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    monkeypatch.setenv("MUSICSVC_SERVER__SHUTDOWN_TIMEOUT", "1")
    stuck = Stuck(tmp_path, monkeypatch, among="commands")
    yield stuck
    stuck.end()


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGTERM, -signal.SIGTERM, ""), (signal.SIGINT, -signal.SIGKILL, KILLED)]
)
def test_an_import_ends_after_the_timeout_whatever_its_threads_do(
    stuck: Stuck, store: Store, tmp_path: Path, songs: Path, number: int, code: int, said: str
) -> None:
    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "catalog", str(songs)) as program:
        until(lambda: tracks() > 0 or program.process.poll() is not None)
        stuck.hold(program.process.pid)
        assert program.end(number) == code
        assert program.err.endswith(said)
    assert 0 < tracks() < ROWS
