"""Commands run in the test process, which takes milliseconds; a new process takes half a second."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from musicsvc.cli.main import command, main
from musicsvc.cli.session import Session
from musicsvc.clock import Clock


def run_in_process(
    arguments: Sequence[str],
    stdin: str = "",
    output: io.TextIOWrapper | None = None,
    errors: io.TextIOWrapper | None = None,
    clock: Clock | None = None,
    migrations: Path | None = None,
) -> CompletedProcess[str]:
    """Run `musicsvc` with these arguments, at the time of `clock`; its stdin is not a terminal.

    With `output` or `errors`, stdout or stderr is written there and empty in the result. `migrations`: the folder of
    the migrations of a made next version.
    """
    given, out, err = (io.TextIOWrapper(io.BytesIO(part), "utf-8") for part in (stdin.encode(), b"", b""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["musicsvc", *arguments])
        for name, stream in (("stdin", given), ("stdout", output or out), ("stderr", errors or err)):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            main(Session(clock=clock or Clock(), migrations=migrations))
    code = end.value.code
    assert isinstance(code, int)
    return CompletedProcess(["musicsvc", *arguments], code, _written(out), _written(err))


def run_at(clock: Clock, *arguments: str) -> str:
    """Run `musicsvc` with these arguments at a time of this clock; it must succeed. Return its stdout."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        code = command().main(arguments, prog_name="musicsvc", obj=Session(clock=clock), standalone_mode=False)
    assert not code, _written(err)
    return _written(out)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()
