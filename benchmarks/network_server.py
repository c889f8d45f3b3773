"""A server of its own for what is measured over the network: the small world, plain or with TLS, and what it holds."""

import http.client
import json
import math
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, Self

import trustme

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from musicsvc.store.seeding import fixtures

sys.path.insert(0, str(Path(__file__).parent))
from collections.abc import Callable, Iterator, Mapping, Sequence

import honest_client
import slow_crowd

from musicsvc.store.engine.store import Store

PATIENCE = 100.0  # seconds
MEBIBYTE = 1 << 20
MOST_MEMORY = 128 * MEBIBYTE
MOST_SECONDS = 0.25
TRANSPORTS = {"plain": [False], "tls": [True], "both": [False, True]}  # with TLS or not


class Process(Protocol):
    """The part of `subprocess.Popen` that benchmarks use."""

    @property
    def pid(self) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def terminate(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


@dataclass(frozen=True)
class Server:
    """A running server: its port, a token, and the file of the trusted authority (empty without TLS)."""

    process: Process
    port: int
    token: str
    trusted: str
    filled: Any = None  # the result of `fill` of `running`

    @property
    def memory(self) -> int:
        """Resident bytes (Linux)."""
        text = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) * 1024

    def ask(self, script: str, *arguments: object) -> subprocess.Popen[str]:
        """Start one of our clients as a process of its own; it prints one line of JSON at its end.

        The token is the first line of its stdin: arguments are for everybody to see.
        """
        path = Path(__file__).with_name(script)
        given = (self.port, self.trusted or "-", *arguments)
        line = [sys.executable, "-X", "faulthandler", str(path), *map(str, given)]
        client = subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)  # noqa: S603 - ours
        assert client.stdin is not None
        client.stdin.write(f"{self.token}\n")
        client.stdin.flush()
        return client


def start(options: Sequence[str], variables: Mapping[str, str]) -> tuple[Process, IO[str]]:
    """Start a server on a free port; return its process and its log. Tests put a cheaper start in its place."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "musicsvc", "serve", "--port", "0", *options],
        env={**os.environ, **variables},  # noqa: TID251 - the child's
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    return process, process.stderr


@contextmanager
def running(
    folder: Path,
    settings: Mapping[str, object],
    *,
    tls: bool,
    url: str = "",
    fill: Callable[[Store], Any] = lambda _: None,
    token: str = "",
    more: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server over a new database, in the folder unless `url` is given; `settings` of its section `server`.

    `fill` puts more into the database. `token`: that of an account in the database at `url`, if it is filled already.
    `more` are further environment variables.
    """
    folder.mkdir()
    if not url:
        files.create(folder / "musicsvc.db")
        url = f"sqlite:///{folder / 'musicsvc.db'}"
    schema.upgrade(url)
    with opening.connect(url) as store:
        token = token or store.write(lambda: fixtures.load(now=Clock().now())).result().tokens["demo"]
        filled = fill(store)
    options = certify(folder) if tls else []
    variables = {f"MUSICSVC_SERVER__{name.upper()}": str(value) for name, value in settings.items()}
    places = {"MUSICSVC_DATA_DIR": str(folder), "MUSICSVC_DATABASE_URL": url}
    process, log = start(options, {**variables, **places, **(more or {})})
    try:
        port = next(int(found[1]) for line in log if (found := re.search(r"https?://[\d.]+:(\d+)", line)))
        threading.Thread(target=log.read, daemon=True).start()
        server = Server(process, port, token, str(folder / "trusted.pem") if tls else "", filled)
        warm_up(server)
        yield server
    finally:
        process.terminate()
        process.wait()


def warm_up(server: Server) -> None:
    """Request everything once, so that caches and modules are loaded."""
    connection: http.client.HTTPConnection
    if server.trusted:
        trusting = ssl.create_default_context(cafile=server.trusted)
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting, timeout=30)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    for target in (*honest_client.PATHS, *slow_crowd.LONG):
        method, _, path = target.rpartition(" ")
        body = slow_crowd.EXPORT if method == "POST" else None
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        connection.request(method or "GET", path, body, headers)
        connection.getresponse().read()
    connection.close()


def certify(folder: Path) -> list[str]:
    """Create an authority and a certificate for this machine; return the options that use it."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "trusted.pem")
    issued.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    return ["--tls-cert", str(folder / "both.pem"), "--tls-key", str(folder / "both.pem")]


class Watch:
    """The maximum memory of the server while this is open."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most = server.memory

    def _look(self) -> None:
        while not self._done.wait(0.1):
            self.most = max(self.most, self._server.memory)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()


def output_of(client: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the final output of a client; one that does not end prints its stack."""
    try:
        output, _ = client.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        client.send_signal(signal.SIGABRT)
        raise
    assert client.returncode == 0
    found: dict[str, Any] = json.loads(output)
    return found


def percentile(times: list[float], percent: int) -> float:
    """Return a percentile of the times."""
    return sorted(times)[math.ceil(len(times) * percent / 100) - 1]


def percentiles(times: list[float]) -> str:
    """Return the percentiles as text."""
    middle, late = (percentile(times, each) * 1000 for each in (50, 99))
    return f"{len(times)} answers, p50 {middle:.1f} ms, p99 {late:.1f} ms, at most {max(times) * 1000:.1f} ms"
