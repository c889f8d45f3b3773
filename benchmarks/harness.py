"""Checkouts, databases, servers, the yardstick, rounds in turn and tables, for all benchmarks.

A benchmark compares variants: servers, or other programs, that get the same work in turn, so that other work on the
machine disturbs all alike. `--against PATH` adds the variants of another checkout of this repository, which the same
Python runs with its own package and its own databases. Write results as ratios of one run.
"""

import argparse
import http.client
import json
import os
import re
import resource
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import apsw
import trustme

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.append(str(ROOT))  # for tests/support, behind the package of the checkout that runs
CPU_TIME = 2  # the clock of a process that counts nanoseconds
MEBIBYTE = 1 << 20
MOST_MEMORY = 128  # MiB that an attack may cost
HEADS = ("albums", "tracks/1", "users/me", "genres", "playlists")  # requested once before anything is measured
Values = dict[str, list[float]]
ON = {"limits.local": "true", "limits.token": "999999999/minute", "limits.address": "999999999/minute"}
# Also the backup of a kept database, whose check would be measured with the first requests.
OFF = {"limits.enabled": "false", "backups.every_hours": "0"}


def parser(doc: str | None, rounds: int = 5, **numbers: float) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark, and options for these numbers with their defaults."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--rounds", type=int, default=rounds)
    found.add_argument("--only", default="", help="the rows whose name matches this pattern")
    found.add_argument("--against", type=Path, help="another checkout to compare with")
    found.add_argument("--folder", type=Path, help="keep the databases there, and use them again")
    for name, value in numbers.items():
        found.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    return found


@dataclass(frozen=True)
class Checkout:
    """A checkout of this repository; `name` is empty if there is only one."""

    name: str
    root: Path

    def start(self, *line: str, variables: Mapping[str, str] | None = None, **pipes: Any) -> "subprocess.Popen[str]":
        """Start Python with these arguments and the package of this checkout."""
        inherited = os.environ  # noqa: TID251 - the child's
        kept = {"PYTHONDONTWRITEBYTECODE": ""}  # as an installed program has bytecode; compiling takes 0.2 s
        environment = {**inherited, **kept, "PYTHONPATH": str(self.root), **(variables or {})}
        return subprocess.Popen([sys.executable, *line], cwd=self.root, env=environment, text=True, **pipes)  # noqa: S603 - ours

    def run(self, *line: str, variables: Mapping[str, str]) -> None:
        """Run `musicsvc` with these arguments."""
        process = self.start("-m", "musicsvc", "-q", *line, variables=variables, stdout=subprocess.DEVNULL)
        assert process.wait() == 0, line

    def label(self, *parts: str) -> str:
        """Return the name of a variant of this checkout."""
        return ", ".join(part for part in (self.name, *parts) if part) or "musicsvc"


def checkouts(given: argparse.Namespace) -> list[Checkout]:
    """Return this checkout, and the other one if it was asked for."""
    if given.against is None:
        return [Checkout("", ROOT)]
    return [Checkout("now", ROOT), Checkout("before", given.against.resolve())]


class Inside:
    """Functions of one of our scripts, run by a process with the package of a checkout; see `answer_inside`."""

    def __init__(self, checkout: Checkout, script: str, url: str) -> None:
        pipe = subprocess.PIPE
        self._process = checkout.start(str(HERE / script), "--inside", url, stdin=pipe, stdout=pipe)

    def ask(self, name: str, *arguments: object) -> Any:
        """Call a function. Return its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{name} failed"
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()


def answer_inside(functions: Mapping[str, Callable[..., object]]) -> None:
    """Call functions with the store of a database, which is created and upgraded, as standard input asks."""
    from musicsvc.store import opening  # noqa: PLC0415 - of the checkout that runs this
    from musicsvc.store.engine.sqlite import files  # noqa: PLC0415 - the same
    from musicsvc.store.schema import schema  # noqa: PLC0415 - the same

    url = sys.argv[2]
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite") and not file.exists():
        files.create(file)
    schema.upgrade(url)
    with opening.connect(url) as store:
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            print(json.dumps(functions[name](store, *arguments)), flush=True)


@dataclass(frozen=True)
class Database:
    """A filled database: its address, a token of an account in it, and what the function of worlds.py returned."""

    url: str
    token: str
    filled: Any

    @property
    def file(self) -> Path:
        """The file of a SQLite database."""
        return Path(self.url.removeprefix("sqlite:///"))


def database(checkout: Checkout, folder: Path, world: str, *arguments: object, url: str = "") -> Database:
    """Create a database by a function of worlds.py, in the folder unless `url` is given. Use it if it is there."""
    folder = folder / (checkout.name or "now") / "-".join([world, *map(str, arguments), *["postgres"] * bool(url)])
    folder.mkdir(parents=True, exist_ok=True)
    kept, url = folder / "world.json", url or f"sqlite:///{folder / 'musicsvc.db'}"
    with Inside(checkout, "worlds.py", url) as inside:
        found = json.loads(kept.read_text("utf-8")) if kept.exists() else inside.ask(world, *arguments)
    kept.write_text(json.dumps(found), "utf-8")
    return Database(url, *found)


def disk_bytes(base: Database) -> int:
    """Return the bytes of a database that nothing uses, without those that its next statements free."""
    if not base.url.startswith("sqlite"):
        import psycopg  # noqa: PLC0415 - not installed for SQLite

        with psycopg.connect(base.url, autocommit=True) as connection:
            connection.execute("VACUUM")
            return int(connection.execute("SELECT pg_database_size(current_database())").fetchall()[0][0])
    file = apsw.Connection(str(base.file))
    file.pragma("wal_checkpoint(TRUNCATE)")
    file.close()
    return base.file.stat().st_size


def copied(base: Database, name: str) -> str:
    """Copy a database that nothing uses, and return the address of the copy, which replaces an older one."""
    if base.url.startswith("sqlite"):
        copy = base.file.with_name(f"{name}.db")
        shutil.copy(base.file, copy)
        return f"sqlite:///{copy}"
    import psycopg  # noqa: PLC0415 - not installed for SQLite
    from psycopg import sql  # noqa: PLC0415 - likewise

    before = base.url.rpartition("/postgres")
    with psycopg.connect(base.url.replace("/postgres", "/template1"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE postgres").format(sql.Identifier(name)))
    return f"{before[0]}/{name}{before[2]}"


def import_catalog(checkout: Checkout, url: str, file: Path, columns: Sequence[str], kind: str = "catalog") -> float:
    """Run `musicsvc import catalog` with `--map` for these columns. Return the CPU seconds that it takes."""
    maps = [part for column in columns for part in ("--map", column)]
    before = children_cpu()
    checkout.run("import", kind, str(file), *maps, variables={"MUSICSVC_DATABASE_URL": url})
    return children_cpu() - before


@contextmanager
def place(given: argparse.Namespace) -> Iterator[Path]:
    """Yield the folder for databases: the given one, or else a temporary one."""
    with tempfile.TemporaryDirectory() as name:
        yield given.folder.resolve() if given.folder else Path(name)


@contextmanager
def own_postgres() -> Iterator[str]:
    """Start a PostgreSQL. Yield the address of an empty database."""
    from tests.support import postgres  # noqa: PLC0415 - only where it is asked for

    server = postgres.Server()
    try:
        yield postgres.database_url(server.folder, "postgres")
    finally:
        server.stop()


@dataclass(frozen=True)
class Server:
    """A running server, or the yardstick. `trusted`: the file of its authority, empty without TLS."""

    process: "subprocess.Popen[str]"
    port: int
    token: str = ""
    trusted: str = ""
    filled: Any = None
    started: tuple[float, float] = (0.0, 0.0)  # seconds, and CPU seconds, until it was ready

    def cpu(self) -> float:
        """Return the CPU seconds of all its processes so far."""
        return sum(map(cpu_seconds, processes(self.process.pid)))

    def memories(self, kind: str = "RssAnon") -> list[int]:
        """Return the anonymous bytes (`VmRSS`: all) that each of its processes has in memory, its own first (Linux)."""
        found = []
        for pid in processes(self.process.pid):
            with suppress(OSError, IndexError):  # it may end meanwhile
                status = Path(f"/proc/{pid}/status").read_text("utf-8")
                found.append(int(re.findall(rf"{kind}:\s+(\d+)", status)[0]) * 1024)
        return found

    def memory(self, kind: str = "RssAnon") -> int:
        """Return the bytes of all its processes, as `memories` does."""
        return sum(self.memories(kind))

    def ask(self, method: str, path: str, body: object = None, token: str | None = None) -> Any:
        """Send a request. Return the JSON of its response."""
        return json.loads(self.body(method, path, body, token))

    def body(self, method: str, path: str, body: object = None, token: str | None = None) -> bytes:
        """Send a request. Return the body of its response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if self.trusted:
            context = ssl.create_default_context(cafile=self.trusted)
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=120)
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status in {HTTPStatus.OK, HTTPStatus.CREATED}, (path, response.status, content[:300])
        return content


@contextmanager
def running(
    checkout: Checkout, base: Database, settings: Mapping[str, object] | None = None, *, tls: bool = False
) -> Iterator[Server]:
    """Run a server over the database, with these settings, such as `server.workers`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = _certify(folder) if tls else []
        variables = {
            f"MUSICSVC_{name.upper().replace('.', '__')}": str(value) for name, value in (settings or {}).items()
        }
        variables |= {"MUSICSVC_DATA_DIR": name, "MUSICSVC_DATABASE_URL": base.url}
        line = ["-m", "musicsvc", "serve", "--port", "0", *options]
        began = time.perf_counter()
        process = checkout.start(*line, variables=variables, stderr=subprocess.PIPE)
        log = process.stderr
        assert log is not None
        try:
            port = next(int(found[1]) for line in log if (found := re.search(r"https?://[\d.]+:(\d+)", line)))
            threading.Thread(target=log.read, daemon=True).start()
            trusted = str(folder / "trusted.pem") if tls else ""
            server = Server(process, port, base.token, trusted, base.filled)
            server.body("GET", "/readyz")
            server = replace(server, started=(time.perf_counter() - began, server.cpu()))
            for path in HEADS:
                with suppress(AssertionError):  # a world may lack it
                    server.body("GET", f"/api/v1/{path}")
            yield server
        finally:
            end(process, signal.SIGTERM)


def end(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send the signal, and wait for the end of the process and of its workers."""
    below = processes(process.pid)[1:] if process.poll() is None else []
    process.send_signal(number)
    process.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in below):
        time.sleep(0.01)


def _certify(folder: Path) -> list[str]:
    """Create an authority and a certificate for this machine; return the options that use it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "trusted.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    return ["--tls-cert", str(folder / "both.pem"), "--tls-key", str(folder / "both.pem")]


@contextmanager
def bare(bodies: Sequence[bytes] = ()) -> Iterator[Server]:
    """Run the yardstick with these bodies (bare.py)."""
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / str(number) for number in range(len(bodies))]
        for file, body in zip(files, bodies, strict=True):
            file.write_bytes(body)
        line = [str(HERE / "bare.py"), *map(str, files)]
        with Checkout("", ROOT).start(*line, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                yield Server(process, int(process.stdout.readline()))
            finally:
                process.kill()


def children_cpu() -> float:
    """Return the CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def usage(process: "subprocess.Popen[str]") -> resource.struct_rusage:
    """Wait for the end of a process. Return what it used."""
    _, process.returncode, used = os.wait4(process.pid, 0)
    return used


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of all threads of a process so far, with those of ended threads (Linux)."""
    return time.clock_gettime(~pid << 3 | CPU_TIME)  # as clock_getcpuclockid(3) returns it


def processes(pid: int) -> list[int]:
    """Return the ids of a process and of all its descendants (Linux)."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    below = [int(child) for file in files for child in file.read_text("ascii").split()]
    return [pid, *(each for child in below for each in processes(child))]


class Watch:
    """The most memory that a server has while this is open, beyond what it had before."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.before = self._most = server.memory("VmRSS")

    def _look(self) -> None:
        while not self._done.wait(0.1):
            self._most = max(self._most, self._server.memory("VmRSS"))

    @property
    def more(self) -> float:
        """MiB."""
        return (self._most - self.before) / MEBIBYTE

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()


def in_turn(rounds: int, work: Mapping[str, Callable[[int], float]]) -> Values:
    """Do the work of each variant in each round. Return the values of the rounds; one before them warms up.

    With 0 rounds, which measure nothing, there is one without another before it.
    """
    found: Values = {name: [] for name in work}
    for number in range(rounds + 1) if rounds else (1,):
        for name, do in work.items():
            value = do(number)
            if number:
                found[name].append(value)
    return found


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Return the median, and in brackets the least and the greatest."""
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} … {max(values):,.{digits}f})"


@dataclass
class Table:
    """A table with a row for each kind of work: the values of all variants, and ratios of values of the same round.

    A ratio has a title and two variants: the first one's values are divided by the other's.
    """

    first: str
    variants: Sequence[str]
    ratios: Sequence[tuple[str, str, str]] = ()
    unit: str = "µs"
    digits: int = 0

    def __post_init__(self) -> None:
        """Print the head, with a ratio of the two checkouts for each variant that both have."""
        others = [(name, name.replace("now", "before", 1)) for name in self.variants if name.startswith("now")]
        self.ratios = [*self.ratios, *((f"{one} / before", one, other) for one, other in others)]
        titles = [
            self.first,
            *(f"{name}, {self.unit}" for name in self.variants),
            *(title for title, _, _ in self.ratios),
        ]
        print("|", " | ".join(titles), "|\n|" + "---|" * len(titles), flush=True)

    def row(self, name: str, values: Values, *more: str) -> None:
        """Print a row."""
        shown = [spread(values[each], self.digits) for each in self.variants]
        for _, one, other in self.ratios:
            ratios = [first / max(second, 1e-9) for first, second in zip(values[one], values[other], strict=True)]
            shown.append(f"{statistics.median(ratios):.2f}")
        print("|", " | ".join([name, *shown, *more]), "|", flush=True)


def say(broken: Sequence[str]) -> int:
    """Print the broken guarantees. Return the exit code."""
    for each in broken:
        print(f"broken: {each}")
    return 1 if broken else 0
