"""Real builds of the package: its wheel, built from a source tree, unpacked into a folder, and run on one database."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.preloaded import Process
from tests.support.program import Program

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("musicsvc", "fixtures", "README.md", "LICENSE", "pyproject.toml")
NOTHING: Mapping[str, str] = MappingProxyType({})


class Version:
    """A version of the program, unpacked from its wheel into a folder, on one database."""

    def __init__(self, folder: Path, url: str, data: Path, variables: Mapping[str, str] = NOTHING) -> None:
        self._work = folder.parent
        self._variables = {
            **os.environ,  # noqa: TID251 - handed on
            "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
            "MUSICSVC_DATABASE_URL": url,
            "MUSICSVC_DATA_DIR": str(data),
            **variables,
        }

    def start(self, arguments: Sequence[str], out: int, err: int) -> Process:
        command = [sys.executable, "-m", "musicsvc", *arguments]
        return subprocess.Popen(command, stdout=out, stderr=err, cwd=self._work, env=self._variables)

    def serve(self, folder: Path) -> Program:
        folder.mkdir()
        return Program(folder, "serve", "--port", "0", start=self.start)

    def __call__(self, *arguments: str, expect: int = 0) -> Any:
        """Run a command; return its JSON value, or what it prints as an error."""
        done = self._run("-m", "musicsvc", *arguments)
        assert done.returncode == expect, done
        return done.stderr if expect else json.loads(done.stdout)

    def evaluate(self, code: str) -> Any:
        """Run this code of Python, which may import the tests too; return the JSON value that it prints."""
        done = self._run("-c", code)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self._work, env=self._variables, capture_output=True, text=True, check=False)


class Builder:
    """Builds versions in a folder, for one database."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url

    def __call__(
        self, version: str, migrations: Mapping[str, str] = NOTHING, variables: Mapping[str, str] = NOTHING
    ) -> Version:
        """Build the tree of now under this version, with made migrations: their texts by their names."""
        source = self._folder / f"source-{version}"
        source.mkdir()
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, source / part)
        project = source / "pyproject.toml"
        project.write_text(re.sub('(?m)^version = ".*"$', f'version = "{version}"', project.read_text("utf-8")))
        for name, text in migrations.items():
            (source / "musicsvc/store/migrations" / f"{name}.py").write_text(text)
        return self._unpacked(source, version, variables)

    def released(self, version: str) -> Version:
        """Build a release from its tag; skip the test if the checkout does not have the tag."""
        command = ["git", "-C", str(ROOT), "archive", f"v{version}", *PARTS]
        archive = subprocess.run(command, capture_output=True, check=False)
        if archive.returncode:
            pytest.skip(f"the checkout has no tag v{version}")
        source = self._folder / f"source-{version}"
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
            packed.extractall(source, filter="data")
        return self._unpacked(source, version, NOTHING)

    def _unpacked(self, source: Path, version: str, variables: Mapping[str, str]) -> Version:
        wheels, unpacked = self._folder / "wheels", self._folder / version
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
        subprocess.run(command, cwd=source, check=True, capture_output=True)
        (wheel,) = wheels.glob(f"musicsvc-{version}-*.whl")
        zipfile.ZipFile(wheel).extractall(unpacked)  # noqa: S202 - our own wheel
        return Version(unpacked, self._url, self._folder / "data", variables)
