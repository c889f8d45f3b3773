"""Fork programs from a process that has imported what they need, which takes a new interpreter up to a second.

`tests/support/preloaded.py` starts this file, for `musicsvc` itself or for its programs that read files. Each request
names a program; the process that it becomes has the arguments, the environment, the folder and the streams of the
request, and no other descriptor.
"""

import atexit
import gc
import io
import json
import os
import resource
import runpy
import select
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, TextIO

MODULES = ("uvloop", "musicsvc.cli.main", "musicsvc.server.serving", "musicsvc.server.worker")
OF_READERS = [
    *("musicsvc.store.importing.files.unpacking." + name for name in ("histories", "kinds", "parquet", "workbooks")),
    "duckdb",
]
LARGEST_DESCRIPTOR = 65_536
SIZE = 4  # bytes of a length, an id and a status


def preload(*, readers: bool) -> None:
    """Import what every server imports, and build the command line, or import what `readers` do."""
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` does
    gc.disable()
    for name in OF_READERS if readers else MODULES:
        import_module(name)
    if not readers:
        [*import_module("musicsvc.cli.main").command().commands.values()]
        import_module("musicsvc.cli.later").execute_all()
    gc.freeze()
    assert threading.active_count() == 1, "a fork would lose the other threads"


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Wait for a request; return it with the three standard streams and the pipe of the outcome, or None at the end."""
    header, descriptors, _, _ = socket.recv_fds(channel, SIZE, 4)
    if not header:
        return None
    text = channel.recv(int.from_bytes(header, "big"), socket.MSG_WAITALL)
    return json.loads(text), descriptors


def standard_stream(number: int, like: TextIO) -> TextIO:
    """Open a standard stream as the interpreter does, which looks at its file."""
    assert isinstance(like, io.TextIOWrapper)
    mode, at_once = "wb" if number else "rb", like.write_through
    binary = open(number, mode, buffering=0 if number and at_once else -1, closefd=False)  # noqa: SIM115 - stays open
    lines = like.line_buffering or binary.isatty()
    return io.TextIOWrapper(binary, like.encoding, like.errors, "\n", line_buffering=lines, write_through=at_once)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Make this process the program of the request."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        opened = standard_stream(number, getattr(sys, name))
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
    os.closerange(3, LARGEST_DESCRIPTOR)
    os.chdir(request["folder"])
    for number, limits in request["limits"].items():
        if list(resource.getrlimit(int(number))) != limits:
            resource.setrlimit(int(number), limits)
    os.environ.clear()  # noqa: TID251 - the environment of the request
    os.environ.update(request["environment"])  # noqa: TID251 - the same
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]
    gc.enable()


def next_program(channel: socket.socket) -> bool:
    """Serve requests. Return False at the end of the tests, and True in a new process that is now the program."""
    running: dict[int, tuple[int, int]] = {}  # by a descriptor that its end makes readable: its id, and its pipe
    while True:
        for ready in select.select([channel.fileno(), *running], [], [])[0]:
            if ready in running:
                pid, outcome = running.pop(ready)
                tell(outcome, os.waitpid(pid, 0)[1])
                done = [ready, outcome]
            elif (received := receive(channel)) is None:
                return False
            else:
                request, (*streams, outcome) = received
                if (pid := os.fork()) == 0:
                    become(request, streams)
                    return True
                tell(outcome, pid)
                running[os.pidfd_open(pid)] = pid, outcome
                done = streams
            for descriptor in done:
                os.close(descriptor)


def tell(outcome: int, number: int) -> None:
    """Write the id or the status of a program, unless nobody waits for it any more."""
    with suppress(BrokenPipeError):
        os.write(outcome, number.to_bytes(SIZE, "big"))


def serve(channel: socket.socket) -> None:
    """Fork programs until the channel is closed; return in each of them at its end, too."""
    if next_program(channel):
        channel.detach()
        try:
            run_program()
        except SystemExit as ended:
            if isinstance(ended.code, int):
                leave(ended.code)
            raise
        leave(0)


def run_program() -> None:
    """Run the code of Python or the module that the arguments name."""
    if sys.argv[1:2] == ["-c"]:
        code, sys.argv[:3] = sys.argv[2], ["-c"]
        sys.path[0] = ""
        exec(code, {"__name__": "__main__"})  # noqa: S102 - as the interpreter does
    else:
        module = "musicsvc"
        if sys.argv[1:3] == ["-P", "-m"]:
            module, sys.argv[1:4] = sys.argv[3], []
            del sys.path[0]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def leave(code: int) -> None:
    """End as the interpreter does, but do not take everything apart, which costs as much as most programs: 0.07 s.

    It would copy each page of memory from the fork server. Return if the output cannot be written, for the usual end.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    preload(readers="readers" in sys.argv)
    serve(socket.socket(fileno=int(sys.argv[1])))
