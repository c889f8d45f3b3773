"""Make the standard streams safe to use, even if they are closed or cannot be written."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO


def prepare() -> None:
    """Replace closed standard streams by the null device, and escape characters that stdout cannot encode.

    A closed stdout is replaced such that writing to it fails, as results would be lost.
    """
    for name, access, mode in (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            stream = open(os.open(os.devnull, access), mode)  # noqa: PTH123, SIM115 - open as long as the program
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Flush stdout. Raises OSError if the output cannot be written."""
    for stream in (sys.stdout, sys.__stdout__):  # typer replaces sys.stdout if the output pipe is closed
        if stream is not None:
            stream.flush()


def discard_unwritten() -> None:
    """Discard buffered output that cannot be written, so that the interpreter does not exit with code 120."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                discard(stream)


def discard(stream: TextIO) -> None:
    """Discard the buffered output of a stream. The stream stays open, and later output is written as before."""
    descriptor = stream.fileno()
    kept = os.dup(descriptor)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)
        stream.flush()
    os.dup2(kept, descriptor)
    os.close(kept)


def write_error(line: str) -> None:
    """Write one line to stderr. Ignores the error if stderr cannot be written."""
    with suppress(OSError):
        sys.stderr.write(f"{line}\n")
