"""Requests generated from the OpenAPI document by schemathesis: every check, every phase."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from musicsvc.server.routes.route import Access
from musicsvc.server.routes.table import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.serving import Client

HOOKS = str(Path(__file__).parents[2] / "support" / "schemathesis_hooks.py")
# 422 is allowed for valid data: the objects that it names may not exist, or the name may be taken.
SETTINGS = """
[checks]
enabled = true

# test_order.py sends each other method to every path.
[phases.coverage]
unexpected-methods = []

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422"]

# A playlist that was just made has no invitation that its owner could answer.
[[operations]]
include-operation-id = ["invites_accept", "invites_decline"]
checks.ensure_resource_availability.enabled = false

# The catalog is everybody's, and so is a playlist that its owner makes public; a conversation is that of all who take
# part. Who sees which is for test_rights.py.
[[operations]]
include-tag = ["albums", "artists", "comments", "genres", "messages", "playlists", "tracks"]
checks.object_level_authorization.enabled = false
"""
# Requests are sent as demo; listener must not see objects of demo.
TOKENS = """
[auth.wfc]
path = "tokens.json"
user = "demo"
peers = ["demo", "listener"]
"""


@pytest.mark.only_on("sqlite")  # test_fuzzing.py and test_fields.py send values of every kind on both
@pytest.mark.parametrize("known", [True, False], ids=["with-a-token", "without-a-token"])
async def test_nothing_that_can_be_made_from_the_document_is_answered_otherwise_than_it_says(
    anonymous: Client,
    world: dict[str, str],
    known: bool,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    slow: bool,
) -> None:
    (tmp_path / "tokens.json").write_text(json.dumps({"auth": [holder(name, world) for name in ("demo", "listener")]}))
    settings = f"hooks = {json.dumps(HOOKS)}\n{SETTINGS}{TOKENS if known else ''}"
    (tmp_path / "schemathesis.toml").write_text(settings, "utf-8")
    # Without a token, endpoints that need one answer 401 to anything (test_order.py); a short run omits them.
    open_to_all = [each.operation for each in ROUTES if each.access is not Access.TOKEN and not each.undocumented]
    left = [] if known or slow else [f"--include-operation-id={operation}" for operation in open_to_all]
    # The same requests in every ordinary run; new ones in each long run, which prints its seed.
    effort = ("--max-examples", "250") if slow else ("--max-examples", "3", "--seed", "1")
    # It would revoke the token of all later requests (test_tokens.py).
    left += ["--exclude-operation-id=tokens_delete"]
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{anonymous.root}/api/v1/openapi.json"),
        *("--warnings", "off", "--suppress-health-check", "all", "--request-timeout", "30", *effort, *left),
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await run.communicate())[0].decode()
    assert run.returncode == 0, output
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert f"✅ {phase}\n" in output, output
    record_property("summary", output[output.rindex("= SUMMARY =") :])


def holder(name: str, world: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {world[name]}"}]}
