"""Reload a server, and read the settings and the log lines that it then has."""

import json
import signal
from pathlib import Path

from tests.support.program import Program, until

OLD, NEW = "70000/minute", "80000/minute"
RELOADED = "reloaded the settings"


class SettingsFile:
    """The settings file of the servers, with a rate limit that answers show."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.write(OLD)

    def write(self, rate: str, more: str = "") -> None:
        self.file.write_text(f'{more}\n[limits]\nlocal = true\ntoken = "{rate}"\n', "utf-8")


def lines(program: Program) -> list[dict[str, str]]:
    return [json.loads(line) for line in program.err.splitlines() if line.startswith("{")]


def messages(program: Program) -> list[str]:
    """Return the messages of the log, without those about scheduled backups, which a slow test may see."""
    return [line["message"] for line in lines(program) if not line["message"].startswith("backed up ")]


def reload(program: Program, expected: str = RELOADED) -> None:
    """Send SIGHUP and wait for a new line in the log that contains `expected`."""
    before = program.err.count(expected)
    program.process.send_signal(signal.SIGHUP)
    until(lambda: program.err.count(expected) > before)
