"""A server over a PostgreSQL that freezes: every response comes in time, and afterwards all is well at once."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.outages import Database, Traffic, ask
from tests.support.postgres import MissingError
from tests.support.program import Program, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("postgres"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]
RESPONSE, READY, RECOVERY = 10.0, 2.0, 1.0  # seconds


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    try:
        made = Database()
    except MissingError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", made.url)
    monkeypatch.setenv("MUSICSVC_LIMITS__LOCAL", "true")
    monkeypatch.setenv("MUSICSVC_LIMITS__TOKEN", "100000/minute")
    yield made
    made.close()


def test_a_frozen_database_delays_no_response_beyond_ten_seconds(
    folder: Path, database: Database, *, long: bool
) -> None:
    with Program(folder, "serve", "--port", "0", "--workers", "2") as program:
        port = int(program.root.rpartition(":")[2])
        with Traffic(port, database.tokens) as traffic:
            until(lambda: len(traffic.acknowledged) > 100)
            with database.frozen():
                frozen = time.monotonic()
                time.sleep(30 if long else 13)
                thawed = time.monotonic()
            until(lambda: traffic.since(thawed + RECOVERY)[100:])
            before = len(traffic.acknowledged)
            until(lambda: len(traffic.acknowledged) > before + 100)
        assert max(response.seconds for response in traffic.responses) < RESPONSE
        assert max(check.seconds for check in traffic.checks) < READY
        during = [one for one in traffic.since(frozen + 0.1) if one.sent + one.seconds < thawed]
        assert {(one.status, one.retry_after) for one in during} == {(503, "1")}
        assert {c.status for c in traffic.checks if frozen < c.sent and c.sent + c.seconds < thawed} == {503}
        assert {one.status for one in traffic.since(thawed + RECOVERY)} == {200}
        assert {check.status for check in traffic.checks if check.sent > thawed + RECOVERY} == {200}
        assert program.end(signal.SIGTERM) == 0
    assert traffic.lost(database.url) == set()


def test_a_write_ends_and_the_server_stops_while_the_database_is_frozen(folder: Path, database: Database) -> None:
    with Program(folder, "serve", "--port", "0") as program:
        port = int(program.root.rpartition(":")[2])
        assert ask(port, "POST", "/api/v1/playlists", database.tokens[0], {"name": "before"}).status == 200
        with database.frozen():
            answer = ask(port, "POST", "/api/v1/playlists", database.tokens[0], {"name": "during"})
            assert (answer.status, answer.retry_after) == (503, "1")
            began = time.monotonic()
            assert program.end(signal.SIGTERM) == 0
            assert time.monotonic() - began < 20
