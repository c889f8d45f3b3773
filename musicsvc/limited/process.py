"""Begin, watch and end processes of the limited program (`program.py`)."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from enum import Enum
from typing import Any

import orjson

from musicsvc.errors import Failure

PROGRAM = "musicsvc.limited.program"
SILENCE = 60.0  # seconds without a part, after which the process ends
WAIT = 0.25  # seconds between two pauses
PIPE = 64 * 1024  # bytes
PIECE = 512 * 1024  # bytes between two pauses


class Pause(Enum):
    """A place between two parts at which the caller looks after other things.

    FULL: about PIECE bytes were read since the last one, the same ones each time. IDLE: the next part takes a while.
    """

    FULL = "full"
    IDLE = "idle"


class Broken(Exception):
    """The process could not do its task. `fault`: `memory`, also if it was ended or took too long, or `damaged`."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


class Limited:
    """A process of the limited program. `close` ends it, and so does the end of this process."""

    def __init__(self, module: str) -> None:
        """Begin the process, which does what `parts` of the module does. Raises OSError if that is impossible."""
        # -P: modules of the working folder are not those that it imports.
        command = [sys.executable, "-P", "-m", PROGRAM, module]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,  # its end is the end of this process
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl+C ends this process, which then ends that one
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, *arguments: Any, seconds: int | None = None) -> Iterator[Any]:
        """Yield the parts of a task, and pauses. `seconds`: of CPU that it may take; None: any number.

        Raises Failure as the task does, and Broken if it ends early, or prints nothing for a minute. Then close the
        process.
        """
        taken = 0
        for line in self._lines(json.dumps([seconds, *arguments]).encode() + b"\n"):
            if isinstance(line, Pause):
                yield line
                continue
            found = orjson.loads(line)
            if isinstance(found, dict):
                if "end" in found:
                    return
                if "failure" in found:
                    raise Failure(json.loads(found["failure"]))
                if "fault" in found:
                    raise Broken(found["fault"])
            yield found
            taken += len(line)
            if taken > PIECE:
                yield Pause.FULL
                taken = 0
        self._process.kill()  # if it is silent
        raise Broken("damaged" if self._process.wait() > 0 else "memory")

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
            while True:
                began = time.monotonic()
                ready = [key.fileobj for key, _ in selector.select(WAIT)]
                if sent in ready:
                    task = task[_write(sent.fileno(), task) :]
                    if not task:
                        selector.unregister(sent)
                if output in ready:
                    if not (piece := output.read(PIPE)):
                        return
                    if b"\n" in piece:
                        *lines, last = b"".join([*rest, piece]).split(b"\n")
                        yield from lines
                        rest, waited = [last], 0.0
                    else:
                        rest.append(piece)
                if not ready:
                    waited += time.monotonic() - began
                    if waited > SILENCE:
                        return
                    yield Pause.IDLE

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def _write(descriptor: int, data: bytes) -> int:
    """Write as much as a pipe takes. Return the number of bytes: all if nobody reads it any more."""
    try:
        return os.write(descriptor, data)
    except BrokenPipeError:
        return len(data)
