"""The commands of docs/install.md that install packages."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import preloaded
from tests.support.page_commands import commands

pytestmark = [pytest.mark.long, pytest.mark.only_on("sqlite")]
PAGE = "install.md"


class Folder:
    """An empty home folder with the packages in `dist`, in which the commands of the page run."""

    def __init__(self, home: Path, packages: Path) -> None:
        self._home = home
        (home / "dist").symlink_to(packages)
        path = f"{home}/tools/bin:{home}/.local/bin:{preloaded.given_environment()['PATH']}"
        self._variables = preloaded.given_environment() | {"HOME": str(home), "PATH": path}

    def run(self, line: str) -> str:
        """Run a command line, which must succeed."""
        done = subprocess.run(
            ["/bin/sh", "-ec", line],
            cwd=self._home,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout


def test_the_wheel_is_installed_in_each_of_the_ways_of_the_page(build: Callable[[str], Path], tmp_path: Path) -> None:
    folder = Folder(tmp_path, build("wheel"))
    folder.run("python3 -m venv tools && tools/bin/pip install -q pipx uv")
    for line in commands(PAGE, "Wheel"):
        folder.run(line)
        tool = line.split()[0]
        program = "venv/bin/musicsvc" if tool == "python3" else ".local/bin/musicsvc"
        assert folder.run(f"{program} --version").startswith("musicsvc ")
        if tool != "python3":
            folder.run(f"{tool} {'tool ' if tool == 'uv' else ''}uninstall musicsvc")
            assert not (tmp_path / program).exists()
