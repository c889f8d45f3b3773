"""Begin, watch and end processes of the limited program (`program.py`)."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.limited import PIECE, Pause

PROGRAM = "musicsvc.limited.program"
SILENCE = 60.0  # seconds without a part, after which the process ends
WAIT = 0.25  # seconds between two pauses
PIPE = 64 * 1024  # bytes


class Broken(Exception):
    """The process could not do its task: `damaged` and why, `program` if it ended itself, as where a module is missing.

    Or `memory`, also if it was ended or took too long.
    """


class Limited:
    """A process of the limited program. `close` ends it, and so does the end of this process."""

    def __init__(self, module: str) -> None:
        """Begin the process, which does what `parts` of the module does. Raises OSError if that is impossible."""
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            # -P: modules of the working folder are not those that it imports.
            [sys.executable, "-P", "-m", PROGRAM, module],
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl+C ends this process, which then ends that one
        )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, *arguments: Any, seconds: int | None = None) -> Iterator[Any]:
        """Yield the parts of a task, and pauses. `seconds`: of CPU that it may take; None: any number.

        Raises Failure as the task does, and Broken if it ends early or prints nothing for SILENCE seconds. Then close
        the process.
        """
        taken = 0
        for line in self._lines(json.dumps([seconds, *arguments]).encode() + b"\n"):
            found = line if isinstance(line, Pause) else orjson.loads(line)
            if isinstance(found, dict):
                if "end" in found:
                    return
                if "failure" in found:
                    raise Failure(json.loads(found["failure"]))
                if "fault" in found:
                    raise Broken(found["fault"])
            yield found
            taken += 0 if isinstance(line, Pause) else len(line)
            if taken > PIECE:
                yield Pause.FULL
                taken = 0
        self._process.kill()  # if it is silent
        raise Broken("program" if self._process.wait() >= 0 else "memory")

    def _lines(self, task: bytes) -> Iterator[bytes | Pause]:
        """Send a task, and yield the lines as they come, and a pause while none does."""
        sent, output = self._process.stdin, self._process.stdout
        assert sent is not None  # noqa: S101 - it is a pipe
        assert output is not None  # noqa: S101 - it is a pipe
        os.set_blocking(sent.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(sent, selectors.EVENT_WRITE)
            rest: list[bytes] = []
            waited = 0.0
            while waited <= SILENCE:
                began = time.monotonic()
                ready = [key.fileobj for key, _ in selector.select(WAIT)]
                if sent in ready:
                    with suppress(BrokenPipeError):  # it has ended, and so has its output
                        task = task[os.write(sent.fileno(), task) :]
                    if not task:
                        selector.unregister(sent)
                if output in ready:
                    if not (piece := output.read(PIPE)):
                        return
                    first, *lines = piece.split(b"\n")
                    rest.append(first)
                    if lines:
                        yield b"".join(rest)
                        yield from lines[:-1]
                        rest, waited = lines[-1:], 0.0
                elif not ready:
                    waited += time.monotonic() - began
                    yield Pause.IDLE

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
