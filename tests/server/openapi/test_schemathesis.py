"""Requests generated from the OpenAPI document by schemathesis: every check, every phase."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.server.routes.route import Access
from musicsvc.server.routes.table import ROUTES
from tests.support.serving import Client

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[3]
RUNS = str(ROOT / "tests" / "support" / "schemathesis_runs.py")
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

# The collaborators of a public playlist are everybody's, too.
[[operations]]
include-operation-id = ["invites_list_collaborators"]
checks.object_level_authorization.enabled = false
"""
# Requests are sent as demo; listener must not see objects of demo.
HOLDERS = ("demo", "listener")
TOKENS = """
[auth.wfc]
path = "tokens.json"
user = "demo"
peers = ["demo", "listener"]
"""
OPTIONS = (
    *(
        "--warnings",
        "off",
        "--suppress-health-check",
        "all",
        "--request-timeout",
        "30",
        "--generation-database",
        "none",
    ),
    "--exclude-operation-id=tokens_delete",  # it would revoke the token of all later requests (test_tokens.py)
)


@pytest.mark.only_on("sqlite")  # test_fuzzing.py and test_fields.py send values of every kind on both
async def test_nothing_that_can_be_made_from_the_document_is_answered_otherwise_than_it_says(
    anonymous: Client,
    world: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    long: bool,
) -> None:
    # The same requests in every ordinary run; new ones in each long run, which prints its seed. An ordinary run sends
    # what is valid: test_parameters.py and test_fields.py send each kind of what is not, to each place, and
    # test_examples.py the examples, which the coverage phase sends with other values, too.
    phases = ["Examples"] * long + ["Coverage", "Fuzzing", "Stateful"]
    effort = ("--max-examples", "250") if long else ("--max-examples", "1", "--seed", "1", "--mode", "positive")
    effort = (*effort, "--phases", ",".join(phases).lower())
    # Without a token, endpoints that need one answer 401 to anything (test_order.py); a short run omits them.
    open_to_all = [each.operation for each in ROUTES if each.access is not Access.TOKEN and not each.docs.undocumented]
    without = [] if long else [f"--include-operation-id={operation}" for operation in open_to_all]
    folders = {"with a token": tmp_path / "known", "without a token": tmp_path / "unknown"}
    for folder, settings, left in zip(folders.values(), (TOKENS, ""), ([], without), strict=True):
        folder.mkdir()
        (folder / "tokens.json").write_text(json.dumps({"auth": [holder(name, world) for name in HOLDERS]}))
        (folder / "schemathesis.toml").write_text(SETTINGS + settings, "utf-8")
        arguments = ("run", f"{anonymous.root}/api/v1/openapi.json", *OPTIONS, *effort, *left)
        (folder / "arguments").write_text("\n".join(arguments), "utf-8")
    # A table of characters that takes seconds to make is made by the first run of this checkout only.
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(ROOT / ".hypothesis"))
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, RUNS, *map(str, folders.values())),
        stdin=asyncio.subprocess.DEVNULL,
    )
    await run.wait()
    for name, folder in folders.items():
        output = (folder / "output").read_text("utf-8")
        assert (folder / "status").read_text("utf-8") == "0", output
        for phase in phases:
            assert f"✅ {phase}\n" in output, output
        record_property(f"summary {name}", output[output.rindex("= SUMMARY =") :])


def holder(name: str, world: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {world[name]}"}]}
