"""A server and a command load nothing that they may not need."""

import subprocess
import sys

SERVER = {"rich", "typst", "duckdb"}
COMMANDS = {"aiohttp", "peewee", "pydantic", "rich", "typst", "regex"}


def loaded(statement: str) -> set[str]:
    """Return the packages that a new Python has loaded after this statement."""
    line = [sys.executable, "-c", f"{statement}; import sys; print(*sys.modules)"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=60, check=True)
    return set(done.stdout.split())


def test_a_server_loads_no_package_that_only_some_requests_need() -> None:
    assert not SERVER & loaded("import musicsvc.server.serving")


def test_the_command_line_loads_no_package_that_only_some_commands_need() -> None:
    assert not COMMANDS & loaded("from musicsvc.cli import main; main.command()")
