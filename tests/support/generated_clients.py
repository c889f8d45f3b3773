"""Clients that generators made from the OpenAPI document, unmodified; tests/clients/install installs the generators."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.preloaded import given_environment

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
PYTHON = CLIENTS / ".venv" / "bin"
MODULES = CLIENTS / "node_modules"
TYPESCRIPT = ("--target", "es2022", "--module", "nodenext", "--strict", "--skipLibCheck")


@dataclass(frozen=True)
class GeneratedClient:
    """A folder with a generated client: the Python package `generated`, or the types `schema.ts`.

    `printed`: what the generator printed, warnings included.
    """

    folder: Path
    printed: str

    async def run(self, script: Path, *arguments: str) -> str:
        """Run a script of Python or TypeScript that uses the client; return what it prints."""
        copied = Path(shutil.copy(script, self.folder))
        if script.suffix == ".py":
            return await self._run(PYTHON / "python", copied, *arguments)
        await self._run(require_node(), MODULES / "typescript/bin/tsc", *TYPESCRIPT, copied)
        return await self._run(require_node(), copied.with_suffix(".js"), *arguments)

    async def _run(self, *command: str | Path) -> str:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            cwd=self.folder,
            env=given_environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, (out, err)
        return out.decode()


def generate_python(document: Mapping[str, Any], folder: Path) -> GeneratedClient:
    """Generate a client with openapi-python-client. Skips the test if it is not installed."""
    require_python()
    (folder / "openapi.json").write_text(json.dumps(document), "utf-8")
    (folder / "options.yml").write_text("post_hooks: []\n")  # which would only format the code
    options = ("--meta", "none", "--config", "options.yml", "--output-path", "generated")
    command = (PYTHON / "openapi-python-client", "generate", "--path", "openapi.json", *options)
    return GeneratedClient(folder, _generate(folder, *command))


def generate_typescript(document: Mapping[str, Any], folder: Path) -> GeneratedClient:
    """Generate types for openapi-fetch with openapi-typescript. Skips the test if it is not installed."""
    node = require_node()
    (folder / "openapi.json").write_text(json.dumps(document), "utf-8")
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"type": "module"}')
    command = (node, MODULES / "openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts")
    return GeneratedClient(folder, _generate(folder, *command))


def require_python() -> None:
    """Skip the test if openapi-python-client is not installed."""
    if not (PYTHON / "openapi-python-client").exists():
        pytest.skip("openapi-python-client is not installed (tests/clients/install)")


def require_node() -> str:
    """Return the path of Node.js. Skips the test if it or openapi-typescript is not installed."""
    node = shutil.which("node")
    if node is None or not MODULES.exists():
        pytest.skip("openapi-typescript is not installed (tests/clients/install, which needs npm)")
    return node


def _generate(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(command, cwd=folder, env=given_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout + done.stderr
