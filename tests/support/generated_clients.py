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
    """A folder with a generated client: the Python package `generated`, or the types `schema.ts`."""

    folder: Path

    async def run(self, script: Path, *arguments: str) -> str:
        """Run a script of Python or TypeScript that uses the client; return what it prints."""
        done = await asyncio.to_thread(execute, self.folder, *self.prepare(script), *arguments)
        return done.stdout

    def prepare(self, script: Path, *others: Path) -> tuple[str | Path, Path]:
        """Copy a script, and others that are needed, beside the client. Return the command that runs it.

        TypeScript is compiled once, all of these scripts together.
        """
        copied = [Path(shutil.copy(each, self.folder)) for each in (script, *others)]
        if script.suffix == ".py":
            return PYTHON / "python", copied[0]
        compiled = copied[0].with_suffix(".js")
        if not compiled.exists():
            execute(self.folder, require_node(), MODULES / "typescript/bin/tsc", *TYPESCRIPT, *copied)
        return require_node(), compiled


def generate_python(document: Mapping[str, Any], folder: Path) -> GeneratedClient:
    """Generate a client with openapi-python-client, without a warning. Skips the test if it is not installed."""
    require_python()
    (folder / "openapi.json").write_text(json.dumps(document), "utf-8")
    (folder / "options.yml").write_text("post_hooks: []\n")  # which would only format the code
    options = ("--meta", "none", "--config", "options.yml", "--output-path", "generated")
    command = (PYTHON / "openapi-python-client", "generate", "--path", "openapi.json", *options)
    done = execute(folder, *command)
    assert done.stdout + done.stderr == "Generating generated\n"  # no part of the document is left out
    return GeneratedClient(folder)


def generate_typescript(document: Mapping[str, Any], folder: Path) -> GeneratedClient:
    """Generate types for openapi-fetch with openapi-typescript, without a warning. Skips it if it is not installed."""
    node = require_node()
    (folder / "openapi.json").write_text(json.dumps(document), "utf-8")
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"type": "module"}')
    command = (node, MODULES / "openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts")
    done = execute(folder, *command)
    assert "→ schema.ts" in done.stdout + done.stderr
    assert "⚠" not in done.stdout + done.stderr
    return GeneratedClient(folder)


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


def execute(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; it must succeed."""
    done = subprocess.run(command, cwd=folder, env=given_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done
