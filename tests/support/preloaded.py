"""Programs that start with everything imported: they fork from processes that each test process starts once."""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from types import MappingProxyType
from typing import Any, AnyStr, Protocol

from tests.support import fork_server

OF_READERS = [sys.executable, "-P", "-m"]  # how the commands of readers begin
# Variables that only a new interpreter or process heeds.
EARLY = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_", "TZ", "SSL_")
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class Process(Protocol):
    """The part of `subprocess.Popen` that tests use."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class Forked:
    """A program that forked from the server; its end is read from a pipe."""

    def __init__(self, outcome: int) -> None:
        self._outcome = outcome
        self.returncode: int | None = None
        self.pid = self._read()

    def _read(self) -> int:
        told = os.read(self._outcome, fork_server.SIZE)
        assert told, "the fork server has ended"
        return int.from_bytes(told, "big")

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._outcome], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("musicsvc", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(self._read())
            os.close(self._outcome)
        return self.returncode

    def send_signal(self, sig: int, /) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and its status is on the way
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Channel:
    """The way to a process that programs fork from, which one process at a time may use."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def fileno(self) -> int:
        return self._channel.fileno()

    def start(self, arguments: Sequence[str], variables: dict[str, str], *streams: int) -> Forked:
        reading, writing = os.pipe()
        request = {
            "arguments": arguments,
            "environment": variables,
            "folder": str(Path.cwd()),
            "limits": {number: resource.getrlimit(number) for number in LIMITS},
        }
        text = json.dumps(request).encode()
        with Path(os.devnull).open("rb+", buffering=0) as none:
            opened = [none.fileno() if stream == DEVNULL else stream for stream in streams]
            with _one_at_a_time:  # servers draw on several threads
                socket.send_fds(self._channel, [len(text).to_bytes(fork_server.SIZE, "big")], [*opened, writing])
                self._channel.sendall(text)
        os.close(writing)
        return Forked(reading)


class ForkServer(Channel):
    """The process that programs fork from, a new interpreter; it ends when its channel is closed.

    `prefix`: the beginning of a command that starts it in other surroundings, with these variables only.
    """

    def __init__(self, kind: str, prefix: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> None:
        self.early = early()
        channel, theirs = socket.socketpair()
        super().__init__(channel)
        with theirs:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, str(Path(fork_server.__file__)), str(theirs.fileno()), kind],
                env=variables,
                stdin=DEVNULL,
                stdout=DEVNULL,
                start_new_session=True,
                preexec_fn=default_signals,  # noqa: PLW1509 - no other thread runs yet that could hold a lock of these
                pass_fds=[theirs.fileno()],
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait(20)


_one_at_a_time = threading.Lock()
_running: dict[str, ForkServer] = {}
_variables_of_run: dict[str, str] = {}


def note_variables() -> None:
    """Let programs fork only while the early variables are those of now, not those that a test has changed."""
    _variables_of_run.update(early())


def fork_server_of(kind: str) -> ForkServer | None:
    """Return the server from which `programs` or `readers` fork, or None if they have to start otherwise."""
    with _one_at_a_time:
        running = _running.get(kind)
        if sys.platform != "linux" or early() != (running.early if running else _variables_of_run or early()):
            return None
        return running or _running.setdefault(kind, ForkServer(kind))


def start(
    arguments: Sequence[str],
    stdout: int = DEVNULL,
    stderr: int = DEVNULL,
    stdin: int = DEVNULL,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Process:
    """Start `musicsvc` with these streams and further variables, or after `-c` this code of Python."""
    if (server := fork_server_of("programs")) is not None:
        return server.start(arguments, {**environment(), **variables}, stdin, stdout, stderr)
    return fresh(arguments, stdout, stderr, stdin, variables=variables)


def fresh(
    arguments: Sequence[str],
    stdout: int,
    stderr: int,
    stdin: int = DEVNULL,
    module: str = "musicsvc",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[bytes]:
    """Start `musicsvc`, another module or code in a new interpreter."""
    return subprocess.Popen(
        [sys.executable, *(arguments if arguments[0] == "-c" else ["-m", module, *arguments])],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**environment(), **variables},
        start_new_session=True,
        preexec_fn=default_signals,  # noqa: PLW1509 - no other thread runs yet that could hold a lock of these
    )


def close() -> None:
    """End the fork servers that have been started."""
    while _running:
        _running.popitem()[1].close()


class Popen(subprocess.Popen[AnyStr]):
    """Starts processes; takes the place of `subprocess.Popen`, so that programs that read files fork, too."""

    def __new__(cls, args: Any, *_: Any, **options: Any) -> Any:
        is_reader = isinstance(args, list) and args[:3] == OF_READERS and "env" not in options
        server = fork_server_of("readers") if is_reader else None
        return super().__new__(cls) if server is None else Reader(server, args[1:])


class Reader:
    """A forked program with a pipe to its stdin and one from its stdout."""

    def __init__(self, server: ForkServer, arguments: Sequence[str]) -> None:
        (given, writing), (reading, printed) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(writing, "wb", 0), os.fdopen(reading, "rb", 0)
        self._process = server.start(arguments, environment(), given, printed, DEVNULL)
        os.close(given)
        os.close(printed)
        self.pid, self.poll, self.wait = self._process.pid, self._process.poll, self._process.wait
        self.kill = self._process.kill

    def communicate(self) -> None:
        """Close its pipes, and wait for its end."""
        self.stdin.close()
        self.stdout.close()
        self.wait()


def default_signals() -> None:
    """Handle signals as a program that a shell starts, though the tests may run under nohup or in the background."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def early() -> dict[str, str]:
    """Return the variables that must be those of the fork server."""
    return {name: value for name, value in environment().items() if name.startswith(EARLY)}


def environment() -> dict[str, str]:
    """Return the variables of this process."""
    return dict(os.environ)  # noqa: TID251 - for another process


def given_environment() -> dict[str, str]:
    """Return the variables of this process for other programs, without the empty certificates of tests/conftest.py."""
    empty = ("SSL_CERT_FILE", os.devnull)
    return {name: value for name, value in environment().items() if (name, value) != empty}
