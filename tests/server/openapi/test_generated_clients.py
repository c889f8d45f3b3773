"""Clients generated from the OpenAPI document work without hand-fixing."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Client

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

CLIENTS = Path(__file__).resolve().parents[2] / "clients"
PYTHON = CLIENTS / ".venv" / "bin"
MODULES = CLIENTS / "node_modules"
TYPESCRIPT = ("--target", "es2022", "--module", "nodenext", "--strict", "--skipLibCheck")


async def run(folder: Path, *command: str | Path) -> str:
    """Run a command in the folder; return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (out, err)
    return out.decode()


async def save_document(client: Client, folder: Path) -> None:
    (folder / "openapi.json").write_bytes((await client.get("openapi.json")).body)


async def expected(client: Client, name: str) -> dict[str, Any]:
    """Return the expected output of a client's walk, requested without that client."""
    albums = (await client.get("albums?perPage=100")).json["albums"]["data"]
    tracks = [track["id"] for album in albums for track in album["tracks"]]
    assert len(albums) > 4
    return {
        "albums": [album["id"] for album in albums],
        "playlist": name,
        "tracks_count": 3,
        "first_page": tracks[:2],
        "total": 3,
    }


async def test_a_python_client_pages_through_a_list_and_builds_a_playlist(
    anonymous: Client, world: dict[str, str], tmp_path: Path
) -> None:
    if not (PYTHON / "openapi-python-client").exists():
        pytest.skip("openapi-python-client is not installed (tests/clients/install)")
    demo = anonymous.holding(world["demo"])
    await save_document(demo, tmp_path)
    (tmp_path / "options.yml").write_text("post_hooks: []\n")
    options = ("--meta", "none", "--config", "options.yml", "--output-path", "generated")
    await run(tmp_path, PYTHON / "openapi-python-client", "generate", "--path", "openapi.json", *options)
    shutil.copy(CLIENTS / "walk.py", tmp_path)
    printed = await run(tmp_path, PYTHON / "python", "walk.py", demo.root, str(demo.token))
    assert json.loads(printed) == await expected(demo, "From Python")


async def test_a_typescript_client_pages_through_a_list_and_builds_a_playlist(
    anonymous: Client, world: dict[str, str], tmp_path: Path
) -> None:
    node = shutil.which("node")
    if node is None or not MODULES.exists():
        pytest.skip("openapi-typescript is not installed (tests/clients/install, which needs npm)")
    demo = anonymous.holding(world["demo"])
    await save_document(demo, tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    await run(tmp_path, node, MODULES / "openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts")
    shutil.copy(CLIENTS / "walk.ts", tmp_path)
    await run(tmp_path, node, MODULES / "typescript/bin/tsc", *TYPESCRIPT, "walk.ts")
    printed = await run(tmp_path, node, "walk.js", demo.root, str(demo.token))
    assert json.loads(printed) == await expected(demo, "From TypeScript")
