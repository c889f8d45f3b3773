"""`musicsvc serve` as a process: start, refusal to start, end, and restart of workers."""

import asyncio
import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.store import opening
from musicsvc.store.engine.sql import bound, current
from musicsvc.store.engine.url import describe, path_of
from musicsvc.store.schema import history, schema
from tests.support import malformed_requests, preloaded
from tests.support.malformed_requests import ALBUMS, ARTISTS, JSON
from tests.support.postgres_locks import one_waits
from tests.support.program import Program, ended, run, until
from tests.support.raw_connection import connected, in_flight, request, status

sqlite = pytest.mark.only_on("sqlite")  # sockets and signals are the same on both
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")


def refused(*arguments: str) -> str:
    """Run the program; return the one line that it prints before it exits with 1."""
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    return done.stderr


def proc(pid: int, name: str) -> Path:
    return Path(f"/proc/{pid}") / name


@pytest.mark.parametrize("host", ["127.0.0.77777", "a" * 70])
def test_a_host_that_is_none_is_told_so_and_not_to_be_reachable(host: str) -> None:
    with pytest.raises(Failure, match=f"^{host} is not a valid host name or address of this machine"):
        serving.listen(host, 0)


@sqlite
async def test_serve_makes_its_database_when_told_to_and_answers_on_uvloop(folder: Path) -> None:
    with Program(folder, "serve", "--port", "0", "--init", start=preloaded.fresh) as program:
        async with connected(program.root) as wire:
            assert [await status(wire, "GET", path) for path in (ALBUMS, "/healthz", "/readyz")] == [200] * 3
        assert "uvloop" in proc(program.workers[0], "maps").read_text("utf-8")
        file = folder / "folder" / "musicsvc.db"
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
        listens = f"musicsvc listens on {program.root} (API documentation: {program.root}/docs)"
        assert program.err == f"Created the database {file}\n{listens}\n"
        assert program.end(signal.SIGTERM) == 0
        assert program.out == ""


@pytest.mark.slow
@sqlite
async def test_the_wire_holds_on_uvloop_too(serve: Callable[..., Program], token: str) -> None:
    program = serve()
    await malformed_requests.check_no_http(program.root)
    await malformed_requests.check_odd_targets(program.root)
    await malformed_requests.check_bodies(program.root, token)
    for count in (1, 5):
        async with connected(program.root) as wire:
            await wire.send(request("GET", ALBUMS) * count)
            wire.end()
            assert [(await wire.answer()).status for _ in range(count)] == [200] * count
            assert await wire.rest() == b""
    assert program.end(signal.SIGTERM) == 0
    first, stop = program.err.splitlines()
    assert first == f"musicsvc listens on {program.root} (API documentation: {program.root}/docs)"
    assert json.loads(stop)["message"] == "stopped (SIGTERM)"


@sqlite
@pytest.mark.usefixtures("migrated")
def test_a_port_that_is_taken_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = f"Error: Port {port} of 127.0.0.1 is taken. Choose another one with --port.\n"
        assert refused("serve", "--port", str(port)) == told


@sqlite
@pytest.mark.usefixtures("migrated")
def test_a_read_replica_of_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_READ_URL", "postgresql://db.internal/music")
    program = run("serve", "--port", "0")

    assert program.returncode == 1
    assert program.stderr.startswith("Error: database_read_url is set, but database_url is not that of a PostgreSQL ")


@pytest.mark.slow
@sqlite
@pytest.mark.parametrize("named", ["MUSICSVC_DATA_DIR", "MUSICSVC_DATABASE_URL", "data_dir", "database_url"])
def test_a_database_that_is_missing_where_it_was_named_is_not_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    file, settings = folder / "mistyped" / "musicsvc.db", folder / "own.toml"
    value = f"sqlite:///{file}" if "url" in named.lower() else str(file.parent)
    monkeypatch.delenv("MUSICSVC_DATA_DIR")
    settings.touch()
    if named.isupper():
        monkeypatch.setenv(named, value)
    else:
        settings.write_text(f'{named} = "{value}"')
    told = f"Error: There is no database at {file}. Run: musicsvc init\n"
    assert refused("serve", "--port", "0", "--config", str(settings)) == told
    assert not file.parent.exists()
    settings.write_text(settings.read_text() + "\n[server]\ninit = true\n")
    with Program(folder, "serve", "--port", "0", "--config", str(settings)) as program:
        assert program.root
        assert program.err.startswith(f"Created the database {file}\n")


@sqlite
def test_a_database_in_the_default_folder_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSICSVC_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    with Program(folder, "serve", "--port", "0") as program:
        assert program.root
        assert program.err.startswith(f"Created the database {folder / 'data' / 'musicsvc' / 'musicsvc.db'}\n")


@pytest.mark.on_both
@pytest.mark.slow
def test_two_servers_that_start_at_once_make_the_database_once(
    folder: Path, new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(migrated=False)
    if path := path_of(url):
        path.unlink()
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
    monkeypatch.setenv("MUSICSVC_SERVER__INIT", "true")
    with ExitStack() as stack:
        programs = []
        for number in range(3):
            (own := folder / str(number)).mkdir()
            programs.append(stack.enter_context(Program(own, "serve", "--port", "0")))
        assert len({program.root for program in programs}) == 3
        assert sum("Created the database" in program.err for program in programs) == 1
        assert [program.end(signal.SIGTERM) for program in programs] == [0, 0, 0]


@pytest.mark.only_on("postgres")
def test_a_server_waits_while_another_one_makes_the_database(
    folder: Path, new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(migrated=False)
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
    with ExitStack() as stack:
        with schema.migrating(url) as database, bound(database):
            first, *rest = history.missing(schema.applied())
            schema.apply_all(database, [first], None, lambda _done, _total: None)
            program = stack.enter_context(Program(folder, "serve", "--port", "0", "--init"))
            with opening.open_unchecked(url) as store:
                until(lambda: one_waits(store))
            schema.apply_all(database, rest, None, lambda _done, _total: None)
        assert program.root
        assert "Created the database" not in program.err
        assert program.end(signal.SIGTERM) == 0


@pytest.mark.usefixtures("folder")
@sqlite
def test_a_port_that_is_taken_is_told_in_one_line_where_there_is_no_database_yet() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("serve", "--init", "--port", str(port)).startswith(f"Error: Port {port} of 127.0.0.1 is taken.")


@sqlite
@pytest.mark.usefixtures("migrated")
def test_what_cannot_be_served_is_told_in_one_line() -> None:
    told = refused("serve", "--tls-cert", "missing.pem", "--tls-key", "missing.pem")
    assert told == "Error: missing.pem cannot be read: No such file or directory.\n"


@pytest.mark.usefixtures("folder")
def test_a_database_of_another_schema_is_refused_with_the_way_out(
    new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = new_database(migrated=False)
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
    assert refused("serve", "--port", "0") == f"Error: {describe(url)} has no tables yet. Run: musicsvc init\n"


@pytest.mark.usefixtures("migrated")
def test_a_database_with_another_schema_is_not_changed_by_init(store_url: str) -> None:
    def become_old() -> None:
        current().execute_sql(f"DELETE FROM {schema.HISTORY} WHERE name > '0001_z'")
        current().execute_sql(f"UPDATE {schema.HISTORY} SET name = '0000_before'")

    with opening.open_unchecked(store_url) as store:
        store.write(become_old).result()
    line = refused("serve", "--init", "--port", "0")
    assert line.startswith(f"Error: {describe(store_url)} was written before version 0.1.0")
    with opening.open_unchecked(store_url) as store:
        assert [*store.read(schema.applied).result()] == ["0000_before"]


@pytest.mark.slow
@sqlite
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, "1"), (signal.SIGINT, "2")])
async def test_a_second_signal_ends_at_once(
    serve: Callable[..., Program], token: str, number: int, workers: str
) -> None:
    program = serve("--workers", workers)
    async with connected(program.root) as wire:
        assert await status(wire, "GET", ALBUMS) == 200  # the worker has started before the signal
        await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {token}", JSON, "Content-Length: 9"))
        await in_flight(program.root, 1)
        program.process.send_signal(number)
        await asyncio.sleep(0.3)
        assert program.process.poll() is None
        began = time.monotonic()
        assert program.end(number) == 1
        assert time.monotonic() - began < 5  # the first signal alone waits for ten
    assert "Traceback" not in program.err


@sqlite
@pytest.mark.usefixtures("migrated")
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, "1"), (signal.SIGTERM, "2")])
def test_a_signal_is_heeded_from_the_line_on_that_says_where_it_listens(number: int, workers: str) -> None:
    reading, writing = os.pipe()
    program = preloaded.start(["serve", "--port", "0", "--workers", workers], writing, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe, ended(program):
        next(each for each in pipe if "listens on" in each)
        program.send_signal(number)
        assert program.wait(30) == 0
        rest = pipe.read()
        assert "Traceback" not in rest, rest


TURN = """
import sys
from musicsvc import config
from musicsvc.clock import Clock
from musicsvc.server import serving
def ready(root):
    sys.exit(f"{sys.getswitchinterval():.6f}")
serving.serve(config.load(), Clock(), ready)
"""


@pytest.mark.slow
@sqlite
@pytest.mark.usefixtures("migrated")
def test_no_other_thread_keeps_the_event_loop_waiting_for_milliseconds() -> None:
    started = run("-c", TURN)
    assert float(started.stderr.splitlines()[0]) < 0.001
