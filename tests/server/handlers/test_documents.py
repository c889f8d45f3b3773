"""The page that shows the OpenAPI document."""

import re

import pytest

from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


async def test_the_page_needs_no_token_and_nothing_from_elsewhere(anonymous: Client) -> None:
    page = await anonymous.get("/docs")
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
            assert (await anonymous.get(f"/{name}")).status == 200, name


async def test_the_page_has_no_script_in_its_text(anonymous: Client) -> None:
    text = (await anonymous.get("/docs")).body.decode()
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == ["", ""]
    assert not re.search(r"\son\w+=", text)


async def test_the_pages_script_asks_for_the_served_document(anonymous: Client) -> None:
    script = (await anonymous.get("/docs/init.js")).body.decode()
    (address,) = re.findall(r'url: "([^"]+)"', script)
    assert (await anonymous.get(f"/{address}")).json["openapi"].startswith("3.1.")
    assert "validatorUrl: null" in script


async def test_a_file_of_the_page_is_kept_until_it_changes(anonymous: Client) -> None:
    first = await anonymous.get("/docs/swagger-ui-bundle.js")
    assert first.headers["Content-Type"] == "text/javascript; charset=utf-8"
    again = await anonymous.get("/docs/swagger-ui-bundle.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "name", ["nothing.js", "VENDORED.toml", "%2e%2e%2finit.js", "%00.js", "ä.js", "a" * 300 + ".js", "init.js/"]
)
async def test_what_is_no_file_of_the_page_is_not_found(anonymous: Client, name: str) -> None:
    assert (await anonymous.get(f"/docs/{name}")).status == 404
