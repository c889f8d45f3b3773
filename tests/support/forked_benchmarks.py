"""Benchmarks as programs that have everything imported, as have those that they start: half of their time otherwise."""

import multiprocessing
import os
import resource
import runpy
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from subprocess import PIPE
from types import MappingProxyType
from typing import IO, Self

from tests.support import preloaded, program

BENCHMARK = "from tests.support.forked_benchmarks import main; main()"
SCRIPT = "import runpy, sys; sys.path[0] = {folder!r}; runpy.run_path({file!r}, run_name='__main__')"


def run(server: preloaded.ForkServer, *line: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark, which uses the fork server of this process meanwhile."""

    def start(arguments: Sequence[str], out: int, err: int, _: int) -> preloaded.Process:
        return server.start(arguments, preloaded.environment(), server.fileno(), out, err)

    return program.run("-c", BENCHMARK, *line, seconds=600, start=start)


def main() -> None:
    """Run the benchmark that the arguments name. Standard input is the way to the fork server."""
    channel = preloaded.Channel(socket.socket(fileno=os.dup(0)))
    with Path(os.devnull).open("rb") as none:
        os.dup2(none.fileno(), 0)

    def start(_: object, *line: str, variables: Mapping[str, str] = MappingProxyType({}), **pipes: int) -> "Started":
        return Started(channel, line, variables, pipes)

    del sys.argv[0]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    harness = import_module("harness")
    harness.Checkout.start = start
    vars(harness).update(usage=usage, children_cpu=time.perf_counter)  # what it starts are no children
    # A crowd would import all of this again.
    vars(import_module("clients"))["SPAWN"] = multiprocessing.get_context("fork")
    runpy.run_path(sys.argv[0], run_name="__main__")


def usage(process: "Started") -> resource.struct_rusage:
    """Wait for the end of a program, and return what this process used: the program is no child of it."""
    process.wait()
    return resource.getrusage(resource.RUSAGE_SELF)


class Started:
    """A program that a benchmark has started: the part of `subprocess.Popen` that it uses."""

    def __init__(
        self, channel: preloaded.Channel, line: Sequence[str], variables: Mapping[str, str], pipes: Mapping[str, int]
    ) -> None:
        first, *others = line
        script = SCRIPT.format(folder=str(Path(first).parent), file=first)
        arguments = others[1:] if first == "-m" else ["-c", script, *others]
        given, self._files = [], dict[str, IO[str]]()
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = pipes.get(name, number)
            if stream == PIPE:
                reading, writing = os.pipe()
                own, stream = (reading, writing) if number else (writing, reading)
                self._files[name] = os.fdopen(own, "r" if number else "w", encoding="utf-8")
            given.append(stream)
        process = channel.start(arguments, {**preloaded.environment(), **variables}, *given)
        for number, stream in enumerate(given):
            if stream not in {number, subprocess.DEVNULL}:
                os.close(stream)
        self.stdin, self.stdout, self.stderr = (self._files.get(name) for name in ("stdin", "stdout", "stderr"))
        self.pid, self.poll, self.wait, self.kill = process.pid, process.poll, process.wait, process.kill
        self.send_signal = process.send_signal

    def communicate(self) -> None:
        """Close the pipes, and wait for the end."""
        self.__exit__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for file in self._files.values():
            file.close()
        self.wait()
