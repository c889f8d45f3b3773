"""A program as it was installed, without the variables and the Python of the tests."""

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support import preloaded
from tests.support.program import Program, until

PATIENCE = 120.0  # seconds; the first start on a busy machine reads the whole program


class Installed:
    """A program, which this command starts. It gets a path and these variables only."""

    def __init__(self, folder: Path, *command: str | Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._command = [*map(str, command)]
        self._variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **variables}

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run it, and return its stdout; it must succeed."""
        done = self.try_to(*arguments, stdin=stdin)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def try_to(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it, and return its exit code and output."""
        return subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def start(self, *arguments: str) -> Program:
        """Start it as a server; its output goes to files in the folder."""
        return Program(self._folder, *arguments, start=self._start)

    def _start(self, arguments: Sequence[str], stdout: int, stderr: int) -> subprocess.Popen[Any]:
        return subprocess.Popen(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=self._variables,
            start_new_session=True,
            preexec_fn=preloaded.default_signals,  # noqa: PLW1509 - as in preloaded.fresh
        )

    def answers_the_printed_command(self) -> None:
        """Serve the sample data, and run the `curl` command that it prints."""
        with self.start("serve", "--demo", "--port", "0") as demo:
            until(lambda: "\ncurl " in f"\n{demo.out}" or demo.process.poll() is not None, PATIENCE)
            printed = re.search(r"^curl .*$", demo.out, re.MULTILINE)
            assert printed, demo.err
            command = [*shlex.split(printed[0]), "--fail", "--silent", "--show-error"]
            answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
            assert answer.returncode == 0, answer.stderr
            assert answer.stdout.startswith("{")
