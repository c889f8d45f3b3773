"""The standard streams: usable from the start, and at the end never a traceback of the interpreter."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO


def prepare() -> None:
    """Open the null device in place of streams that the caller closed; escape what stdout cannot encode."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open as long as the program
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Write out what stdout holds. Raises OSError where that fails."""
    for stream in (sys.stdout, sys.__stdout__):  # typer replaces sys.stdout when the reader has gone
        if stream is not None:
            stream.flush()


def discard_unwritten() -> None:
    """Drop what the streams cannot write. The interpreter flushes them at exit, and its exit code would be 120."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                discard(stream)


def discard(stream: TextIO) -> None:
    """Drop what the stream holds; later output goes where it went before."""
    descriptor = stream.fileno()
    kept = os.dup(descriptor)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)
        stream.flush()
    os.dup2(kept, descriptor)
    os.close(kept)


def write_error(line: str) -> None:
    """Write one line to stderr; a line that nobody takes is no failure."""
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
