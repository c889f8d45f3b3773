"""The project under test, and copies of it that can be broken."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

INSIDE = Path(__file__).parent / "inside"
NOT_COPIED = (".*", "__pycache__", "*.pyc", "build", "dist", "*.egg-info", "node_modules")
COPIED_ANYWAY = {".gitignore", ".ci"}
POSTGRES = "postgres"  # in names of what runs on that store alone
FROZEN = "migrations"  # scripts that have run on users' databases: they never change, and tests run them whole
DATA_VARIABLE = "MUSICSVC_SHARED_DATA"


@dataclass(frozen=True)
class Project:
    """A folder with a package and its tests."""

    root: Path
    package: str = "musicsvc"
    store: str = "sqlite"

    def modules(self) -> Iterator[str]:
        """The paths of the modules that can be broken, relative to the root."""
        for path in sorted((self.root / self.package).rglob("*.py")):
            module = path.relative_to(self.root).as_posix()
            if FROZEN not in path.parts and (POSTGRES in module) == (self.store == POSTGRES):
                yield module

    def runs(self, function: str) -> bool:
        """Return whether tests of the store can execute a function of `modules`: its name may be of the other one."""
        return self.store == POSTGRES or POSTGRES not in function

    def source(self, module: str) -> bytes:
        return (self.root / module).read_bytes()

    @property
    def options(self) -> list[str]:
        """The options of pytest for the store."""
        return [] if self.store == "sqlite" else ["--store", self.store]

    @property
    def recording(self) -> Path:
        """The file of the recording of this store."""
        return self.cache / ("recording.json" if self.store == "sqlite" else f"recording-{self.store}.json")

    @property
    def cache(self) -> Path:
        """The folder for generated files, which git ignores."""
        return self.root / ".mutation"


def _ignored(folder: str, names: list[str]) -> set[str]:
    return shutil.ignore_patterns(*NOT_COPIED)(folder, names) - COPIED_ANYWAY


class Copy:
    """A copy of the project, with an interpreter that imports the copy whatever its environment variables are."""

    def __init__(self, project: Project) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mutation-"))
        self.root = self._folder / "project" / project.root.name
        shutil.copytree(project.root, self.root, ignore=_ignored)
        venv.create(self._folder / "venv", symlinks=True)
        self.python = self._folder / "venv" / "bin" / "python"
        self.site = next((self._folder / "venv" / "lib").glob("python*/site-packages"))
        own = [path for path in sys.path if path.endswith("-packages")]
        (self.site / "mutation.pth").write_text("\n".join([str(self.root), *own]), "utf-8")
        for plugin in INSIDE.glob("mutation_*.py"):
            shutil.copy(plugin, self.site)
        self._options = project.options
        self._shared = project.root.parent / "shared" / "data"

    def configure(self, name: str, settings: object) -> Path:
        """Write the settings of a plugin beside it."""
        path = self.site / f"{name}.json"
        path.write_text(json.dumps(settings), "utf-8")
        return path

    def start(self, arguments: list[str], output: Path) -> subprocess.Popen[bytes]:
        """Start pytest in the copy, in a process group of its own."""
        command = [str(self.python), "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis", *self._options]
        with output.open("wb") as file:
            return subprocess.Popen(
                [*command, *arguments],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        """Without PYTHONDONTWRITEBYTECODE, which makes every process compile the package again."""
        left_out = {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        if self._shared.is_dir():
            kept.setdefault(DATA_VARIABLE, str(self._shared))
        # Processes that outlive their test are found by this.
        return kept | {"MUTATION_COPY": str(self._folder)}

    def processes(self) -> Iterator[int]:
        """The processes that were started in the copy and still run (Linux)."""
        mark = f"MUTATION_COPY={self._folder}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
            except OSError:
                continue

    def kill(self) -> None:
        """End what still runs in the copy."""
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
