"""Packages, each built once per test run, as a user builds them."""

import subprocess
import sys
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def folder_of_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of the test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if hasattr(request.config, "workerinput") else folder


@pytest.fixture(scope="session")
def build(folder_of_run: Path) -> Callable[..., Path]:
    """Return a function that builds a kind of package and returns the folder that it is in.

    After the kind come the words of a command that runs the build, such as `env`.
    """
    folder = folder_of_run

    def built(kind: str, *within: str) -> Path:
        output = folder / f"built-{kind}"
        with (folder / f"{kind}.lock").open("w") as lock:
            flock(lock, LOCK_EX)
            if not output.exists():
                _require_index(folder)
                command = [*within, str(ROOT / "packaging/build"), kind, "-o", str(output)]
                subprocess.run(command, check=True, timeout=1800)
        return output

    return built


def _require_index(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "hatchling"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("the package index does not answer")
