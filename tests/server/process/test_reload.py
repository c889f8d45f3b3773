"""SIGHUP: a server takes new settings while it runs, and answers every request."""

import re
import signal
import ssl
import time
import weakref
from pathlib import Path
from typing import NoReturn

import pytest
import trustme

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.server.logs import setup as log_setup
from musicsvc.server.metrics.registry import Metrics
from musicsvc.server.reloading import ReloadableServer, Source
from musicsvc.store import opening
from tests.server.conftest import Start
from tests.support.each_worker import until_each_worker
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND
from tests.support.program import Program, until
from tests.support.raw_connection import Wire, connected, in_flight, request, settled
from tests.support.reloads import NEW, OLD, RELOADED, SettingsFile, lines, messages, reload

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


async def limit(wire: Wire, token: str) -> tuple[str, bool]:
    """Send a request. Return its rate limit, and whether the server then closes the connection."""
    await wire.send(request("GET", ALBUMS, f"Authorization: Bearer {token}"))
    answer = await wire.answer()
    assert answer.status == 200
    return answer.headers["X-RateLimit-Limit"], answer.headers.get("Connection") == "close"


async def limits_of_new_connections(program: Program, token: str, count: int = 10) -> set[str]:
    found = set()
    for _ in range(count):
        async with connected(program.root) as wire:
            found.add((await limit(wire, token))[0])
    return found


async def all_reloaded(program: Program, token: str, workers: int = 1) -> None:
    """Wait until new connections find the new settings on every worker."""

    async def reloaded(wire: Wire) -> bool:
        return (await limit(wire, token))[0] == "80000"

    await until_each_worker(program, workers, reloaded)
    assert await limits_of_new_connections(program, token) == {"80000"}


@WORKERS
async def test_new_connections_get_the_new_settings_and_open_ones_finish_with_the_old(
    start: Start, settings: SettingsFile, token: str, workers: str
) -> None:
    program = start("--workers", workers)
    pid, root = program.process.pid, program.root
    until(lambda: workers == "1" or len(program.workers) == 2)
    upload = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, f"Content-Length: {len(SOUND)}")
    async with connected(root) as busy, connected(root) as idle, connected(root) as unused:
        assert await limit(idle, token) == ("70000", False)
        await busy.send(upload + SOUND[:3])
        await in_flight(root, 1)
        settings.write(NEW)
        reload(program)
        await all_reloaded(program, token, int(workers))
        await busy.send(SOUND[3:])
        answer = await busy.answer()
        assert (answer.status, answer.headers["Connection"]) == (201, "close")
        assert answer.headers["X-RateLimit-Limit"] == "70000"
        assert await limit(idle, token) == ("70000", True)
        assert await idle.rest() == b""
        assert await limit(unused, token) == ("70000", True)
    assert messages(program) == [RELOADED]
    assert program.process.pid == pid
    assert program.end(signal.SIGTERM) == 0


@WORKERS
async def test_invalid_settings_leave_the_old_ones_and_say_why_in_one_line(
    start: Start, settings: SettingsFile, token: str, workers: str
) -> None:
    program = start("--workers", workers)
    assert await limits_of_new_connections(program, token) == {"70000"}
    settings.write("80000/fortnight")
    reload(program, "could not reload")
    assert await limits_of_new_connections(program, token) == {"70000"}
    (line,) = lines(program)
    assert line["level"] == "error"
    assert line["message"].startswith("could not reload the settings, the old ones still apply: Setting limits.token (")
    assert str(settings.file) in line["message"]
    settings.write(NEW)
    reload(program)
    await all_reloaded(program, token, int(workers))


async def test_settings_that_need_a_restart_keep_their_value_and_the_rest_changes(
    start: Start, settings: SettingsFile, token: str
) -> None:
    settings.write(OLD, '[server]\nhost = "127.0.0.1"')
    program = start()
    root = program.root
    settings.write(NEW, '[server]\nhost = "::1"\nworkers = 3')
    reload(program)
    await all_reloaded(program, token)
    warning = "a restart is needed to change server.host, server.workers; until then the old value applies"
    assert messages(program) == [warning, RELOADED]
    assert program.root == root


async def test_a_database_that_is_another_is_not_opened(
    start: Start, settings: SettingsFile, token: str, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.delenv("MUSICSVC_DATABASE_URL")
        settings.write(OLD, f'database_url = "{store_url}"')
        program = start()
        assert await limits_of_new_connections(program, token) == {"70000"}
    settings.write(NEW, f'database_url = "{store_url}.missing"')
    reload(program)
    await all_reloaded(program, token)
    assert "database_url;" in messages(program)[0]


@WORKERS
@pytest.mark.usefixtures("settings")
async def test_a_new_certificate_is_used(
    start: Start, token: str, authority: trustme.CA, tmp_path: Path, workers: str
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    context = ssl.create_default_context()
    authority.configure_trust(context)

    def certify(name: str) -> None:
        made = authority.issue_cert("127.0.0.1", common_name=name)
        key.write_bytes(made.private_key_pem.bytes())
        certificate.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))

    def named(wire: Wire) -> str:
        return str(dict(part[0] for part in wire.certificate["subject"])["commonName"])

    async def names() -> set[str]:
        found = set()
        for _ in range(10):
            async with connected(program.root, context) as wire:
                found.add(named(wire))
                wire.reset()
        return found

    async def is_second(wire: Wire) -> bool:
        return named(wire) == "second"

    certify("first")
    program = start("--workers", workers, "--tls-cert", str(certificate), "--tls-key", str(key))
    assert await names() == {"first"}
    async with connected(program.root, context) as wire, connected(program.root) as early:
        assert await limit(wire, token) == ("70000", False)
        certify("second")
        reload(program)
        await until_each_worker(program, int(workers), is_second, context)
        assert await names() == {"second"}
        await early.encrypt(context)  # the old server waits for handshakes in progress
        assert await limit(early, token) == ("70000", True)
        assert await limit(wire, token) == ("70000", True)
        assert await wire.rest() == b""
    key.write_text("no key", "ascii")
    reload(program, "are not a valid certificate and its key")
    assert await names() == {"second"}


async def test_the_log_and_the_metrics_go_on(start: Start, settings: SettingsFile, token: str) -> None:
    program = start()

    async def counts() -> dict[str, float]:
        async with connected(program.root) as wire:
            await wire.send(request("GET", "/metrics"))
            text = (await wire.answer()).body.decode()
        found = re.findall(r"^(musicsvc_(?:requests|store_commits)_total\S*) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    assert await limits_of_new_connections(program, token) == {"70000"}
    before = await counts()
    albums = 'musicsvc_requests_total{method="GET",route="/api/v1/albums",status="200"}'
    assert before[albums] == 10
    settings.write(NEW, "[log]\nrequests = true")
    reload(program)
    assert await limits_of_new_connections(program, token) == {"80000"}
    after = await counts()
    assert after[albums] == 20
    assert after["musicsvc_store_commits_total"] >= before["musicsvc_store_commits_total"]
    until(lambda: len([line for line in lines(program) if line.get("route") == "/api/v1/albums"]) == 10)


@WORKERS
async def test_a_stop_does_not_wait_for_the_idle_clients_of_old_settings(
    start: Start, settings: SettingsFile, token: str, workers: str
) -> None:
    program = start("--workers", workers)
    async with connected(program.root) as wire:
        assert await limit(wire, token) == ("70000", False)
        settings.write(NEW)
        reload(program)
        await all_reloaded(program, token, int(workers))
        began = time.monotonic()
        assert program.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 5
        assert await wire.rest() == b""


def test_an_unexpected_error_leaves_the_old_settings() -> None:
    settings = Settings()

    def load() -> Settings:
        raise OSError("the disk failed")

    source = Source(settings, load)
    assert not source.reload(announce=True)
    assert source.current.settings is settings


async def test_an_unexpected_error_of_the_new_server_is_logged_and_the_old_one_stays(
    store_url: str, clock: MovableClock, capfd: pytest.CaptureFixture[str]
) -> None:
    logged = ""

    def is_refused() -> bool:
        nonlocal logged
        logged += capfd.readouterr().err
        return "could not reload the settings" in logged

    settings = Settings(database_url=store_url)
    changed = settings.model_copy(update={"limits": Limits(local=True)})
    source, listener = Source(settings, lambda: changed), serving.listen("127.0.0.1", 0)
    with log_setup.started(settings.log, clock, threaded=False) as writer:
        server = ReloadableServer(source, clock, listener, Metrics(), writer, announce=False)
        await server.start()
        running = server._running
        listener.close()
        server.request_reload()
        await settled(is_refused)
        assert "Bad file descriptor" in logged
        assert (server._running, source.current.settings) == (running, settings)
        await server.stop()


async def test_a_database_that_cannot_be_opened_is_named_and_the_old_server_stays(
    store_url: str, clock: MovableClock, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=store_url)
    source, listener = Source(settings, lambda: settings), serving.listen("127.0.0.1", 0)
    with log_setup.started(settings.log, clock, threaded=False) as writer:
        server = ReloadableServer(source, clock, listener, Metrics(), writer, announce=False)
        await server.start()
        running, connect = server._running, opening.connect

        def fail(_: str) -> NoReturn:
            raise Failure("The database is gone.")

        monkeypatch.setattr(opening, "connect", fail)
        server.request_reload()
        refused = "could not reload the settings, the old ones still apply: The database is gone."
        await settled(lambda: refused in capfd.readouterr().err)
        assert server._running is running
        monkeypatch.setattr(opening, "connect", connect)
        await server.stop()


async def test_the_memory_of_the_old_server_is_freed(store_url: str, clock: MovableClock) -> None:
    settings = Settings(database_url=store_url)
    source, listener = Source(settings, lambda: settings), serving.listen("127.0.0.1", 0)
    with log_setup.started(settings.log, clock, threaded=False) as writer:
        server = ReloadableServer(source, clock, listener, Metrics(), writer, announce=False)
        await server.start()
        assert server._running is not None
        old = weakref.ref(server._running.app)
        server.request_reload()
        await settled(lambda: old() is None)
        await server.stop()
