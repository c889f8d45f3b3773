"""SIGHUP: a server takes new settings while it runs, and answers every request."""

import asyncio
import json
import os
import re
import signal
import ssl
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import trustme

from musicsvc import config
from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.server.doctor import check_running
from musicsvc.server.serving import Source
from tests.server.conftest import Start
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON, SOUND
from tests.support.program import Program, until
from tests.support.raw_connection import Wire, connected, in_flight, request
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


@pytest.mark.slow
@WORKERS
async def test_new_connections_get_the_new_settings_and_open_ones_finish_with_the_old(
    start: Start, settings: SettingsFile, token: str, workers: str
) -> None:
    program = start("--workers", workers)
    pid, root = program.process.pid, program.root
    until(lambda: len(program.workers) == int(workers))
    upload = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, f"Content-Length: {len(SOUND)}")
    async with connected(root) as busy, connected(root) as idle, connected(root) as unused:
        assert await limit(idle, token) == ("70000", False)
        await busy.send(upload + SOUND[:3])
        await in_flight(root, 1)
        settings.write(NEW)
        reload(program)
        assert await limits_of_new_connections(program, token) == {"80000"}
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


async def test_invalid_settings_leave_the_old_ones_and_say_why_in_one_line(
    start: Start, settings: SettingsFile, token: str
) -> None:
    program = start("--workers", "2")
    assert await limits_of_new_connections(program, token) == {"70000"}
    folder = settings.file.parent
    for rate, more, fault in (
        ("80000/fortnight", "", f"Setting limits.token ({settings.file})"),
        (NEW, f"activity.file = '{folder}'", f"Setting activity.file: {folder} is a folder."),
    ):
        settings.write(rate, more)
        reload(program, "could not reload")
        assert await limits_of_new_connections(program, token) == {"70000"}
        line = lines(program)[-1]
        assert line["level"] == "error"
        assert line["message"].startswith(f"could not reload the settings, the old ones still apply: {fault}")
    assert len(lines(program)) == 2
    settings.write(NEW)
    reload(program)
    assert await limits_of_new_connections(program, token) == {"80000"}


async def test_settings_that_need_a_restart_keep_their_value_and_the_rest_changes(
    start: Start, settings: SettingsFile, token: str
) -> None:
    settings.write(OLD, '[server]\nhost = "127.0.0.1"')
    program = start()
    root = program.root
    settings.write(NEW, '[server]\nhost = "::1"\nworkers = 3')
    reload(program)
    assert await limits_of_new_connections(program, token) == {"80000"}
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
    assert await limits_of_new_connections(program, token) == {"80000"}
    assert "database_url;" in messages(program)[0]


@pytest.mark.usefixtures("settings")
async def test_a_new_certificate_is_used(start: Start, token: str, authority: trustme.CA, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    context = ssl.create_default_context()
    authority.configure_trust(context)

    def certify(name: str, ends: datetime | None = None) -> None:
        made = authority.issue_cert("127.0.0.1", common_name=name, not_after=ends)
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

    async def running(file: Path | None) -> str:
        """Return what `doctor` says of the running server, where the settings name this file."""
        found = config.load(options={"server.tls_cert": file, "server.tls_key": file and key})
        check = partial(check_running, found, now=Clock().now())
        return "".join(finding.finding for finding in await asyncio.to_thread(lambda: list(check())))

    certify("first")
    program = start("--workers", "2", "--tls-cert", str(certificate), "--tls-key", str(key))
    assert await names() == {"first"}
    async with connected(program.root, context) as wire, connected(program.root) as early:
        assert await limit(wire, token) == ("70000", False)
        certify("second")
        assert "The running server still uses another certificate" in await running(certificate)
        reload(program)
        assert await running(certificate) == ""
        assert "The certificate of the running server is valid until" in await running(None)
        assert await names() == {"second"}
        await early.encrypt(context)  # the old server waits for handshakes in progress
        assert await limit(early, token) == ("70000", True)
        assert await limit(wire, token) == ("70000", True)
        assert await wire.rest() == b""
    certificate.unlink()
    old = set(program.workers)
    for worker in old:
        os.kill(worker, signal.SIGKILL)
    assert await names() == {"second"}  # those that take their places do not need the file
    assert not old & set(program.workers)
    certify("second")
    key.write_text("no key", "ascii")
    reload(program, "are not a valid certificate and its key")
    assert await names() == {"second"}
    assert "clients refuse it" not in program.err
    certify("third", datetime(2001, 2, 3, tzinfo=UTC))
    reload(program)
    until(lambda: "to 2001-02-03 only: clients refuse it" in program.err)


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


async def test_a_stop_does_not_wait_for_the_idle_clients_of_old_settings(
    start: Start, settings: SettingsFile, token: str
) -> None:
    program = start()
    async with connected(program.root) as wire:
        assert await limit(wire, token) == ("70000", False)
        settings.write(NEW)
        reload(program)
        assert await limits_of_new_connections(program, token) == {"80000"}
        began = time.monotonic()
        assert program.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 5
        assert await wire.rest() == b""


def test_an_unexpected_error_leaves_the_old_settings() -> None:
    settings = Settings()

    def load() -> Settings:
        raise OSError("the disk failed")

    source = Source(settings, load)
    assert not source.reload()
    assert source.current.settings is settings


@pytest.mark.only_on("sqlite")
async def test_a_database_that_cannot_be_opened_is_named_and_the_old_workers_stay(
    start: Start, settings: SettingsFile, token: str, store_url: str
) -> None:
    program = start()
    assert await limits_of_new_connections(program, token) == {"70000"}
    workers, database = program.workers, Path(store_url.removeprefix("sqlite:///"))
    away = database.rename(database.with_name("away"))  # noqa: ASYNC240 - at once
    settings.write(NEW)
    reload(program, "could not reload the settings, the old ones still apply: a worker process did not start")
    away.rename(database)
    missing = f"worker process failed: There is no database at {database}"
    assert any(line["message"].startswith(missing) for line in lines(program))  # old workers may miss it, too
    until(lambda: program.workers == workers)  # the failed one is about to end
    assert await limits_of_new_connections(program, token) == {"70000"}


BROKEN = """
import os, signal, sys
from musicsvc import config
from musicsvc.clock import Clock
from musicsvc.server import serving
from musicsvc.server.app import App
def load():
    App.__init__ = None  # the next worker fails
    return settings
settings = config.load()
serving.serve(settings, Clock(), lambda root: print(f"listens on {root}", file=sys.stderr, flush=True), load)
"""


async def test_if_a_new_worker_fails_the_old_ones_stay(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", "0")
    monkeypatch.setenv("MUSICSVC_SERVER__WORKERS", "2")
    with Program(tmp_path, "-c", BROKEN) as program:
        async with connected(program.root) as wire:
            await wire.send(request("GET", "/healthz"))
            assert (await wire.answer()).status == 200
            old = program.workers
            reload(program, "could not reload the settings, the old ones still apply: a worker process did not start")
            until(lambda: set(program.workers) == set(old))
            await wire.send(request("GET", "/healthz"))
            answer = await wire.answer()
            assert (answer.status, "Connection" in answer.headers) == (200, False)
        assert program.end(signal.SIGTERM) == 0
        assert "starting a replacement" not in program.err


async def test_a_server_that_stops_reloads_nothing(start: Start, settings: SettingsFile, token: str) -> None:
    program = start()
    upload = request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, f"Content-Length: {len(SOUND)}")
    async with connected(program.root) as busy:
        await busy.send(upload + SOUND[:3])
        await in_flight(program.root, 1)
        program.process.send_signal(signal.SIGTERM)
        settings.write(NEW)
        program.process.send_signal(signal.SIGHUP)
        await busy.send(SOUND[3:])
        assert (await busy.answer()).status == 201
    assert program.process.wait(30) == 0
    assert messages(program) == ["stopped (SIGTERM)"]


@pytest.mark.slow
@pytest.mark.usefixtures("token")
async def test_several_workers_count_wrong_passwords_on_through_a_reload(start: Start, settings: SettingsFile) -> None:
    """Also those that arrive over connections to the workers that retire, when their successors run already."""
    settings.write("1/hour")
    program = start("--workers", "2")
    body = json.dumps({"email": "ann@label.test", "password": "wrong", "token_name": "phone"}).encode()

    async def sign_in(wire: Wire) -> int:
        await wire.send(request("POST", "/api/v1/auth/login", JSON, body=body))
        return (await wire.answer()).status

    async with connected(program.root) as one, connected(program.root) as other, connected(program.root) as first:
        for wire in (one, other):
            await wire.send(request("GET", "/healthz"))
            assert (await wire.answer()).status == 200
        assert [await sign_in(first) for _ in range(8)] == [422] * 8
        reload(program)
        assert [await sign_in(one), await sign_in(other)] == [422] * 2
        async with connected(program.root) as new:
            assert await sign_in(new) == 429
