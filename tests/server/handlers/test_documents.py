"""The page that shows the OpenAPI document."""

import re
from pathlib import Path

import pytest

from musicsvc.server.openapi.tools import tools
from musicsvc.server.routes.table import ROUTES
from tests.support.serving import Client
from tests.support.shared_server import on_shared_loop

DOCS = Path(__file__).parents[3] / "docs"
pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]  # the same over either database


async def test_the_page_needs_no_token_and_nothing_from_elsewhere(member: Client) -> None:
    page = await member.holding(None).get("/docs")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    text = page.body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len(named) > 4
    for name in named:
        if not name.startswith("data:"):
            assert ":" not in name
            assert (await member.get(f"/{name}")).status == (303 if name == "settings/developers" else 200), name


async def test_assistants_find_documents_tools_and_endpoints_in_a_text(member: Client) -> None:
    answer = await member.holding(None).get("/llms.txt")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    text = answer.body.decode()
    for address in re.findall(r"\]\((\S+)\)", text):
        assert (await member.get(address)).status == 200, address
    assert re.findall(r"^- (\w+): ", text, re.MULTILINE) == [*tools()]
    listed = re.findall(rf"^- ([A-Z]+) {re.escape(member.root)}(/\S*): ", text, re.MULTILINE)
    assert listed == [(route.method, route.path) for route in ROUTES if not route.docs.undocumented]
    described = re.findall(r"^\| `(\w+)` \|", (DOCS / "assistants.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(described) == sorted(tools())


async def test_the_page_has_no_script_in_its_text(member: Client) -> None:
    text = (await member.get("/docs")).body.decode()
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == ["", ""]
    assert not re.search(r"\son\w+=", text)


async def test_the_pages_script_asks_for_the_served_document(member: Client) -> None:
    script = (await member.get("/docs/init.js")).body.decode()
    (address,) = re.findall(r'url: "([^"]+)"', script)
    assert (await member.get(f"/{address}")).json["openapi"].startswith("3.1.")
    assert "validatorUrl: null" in script


async def test_a_file_of_the_page_is_kept_until_it_changes(member: Client) -> None:
    first = await member.get("/docs/swagger-ui-bundle.js")
    assert first.headers["Content-Type"] == "text/javascript; charset=utf-8"
    again = await member.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


async def test_what_is_no_file_of_the_page_is_not_found(member: Client) -> None:
    for name in ("nothing.js", "VENDORED.toml", "%2e%2e%2finit.js", "%00.js", "ä.js", "a" * 300 + ".js", "init.js/"):
        assert (await member.get(f"/docs/{name}")).status == 404, name
