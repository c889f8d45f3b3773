"""A service below a base path: what is below it, what is outside, and links that stay below."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from http import HTTPStatus

import pytest
import pytest_asyncio
from yarl import URL

from musicsvc.config import Metrics, Server, Settings
from musicsvc.server.pages import html
from tests.rights.world import PASSWORD
from tests.support import databases
from tests.support.page_client import PageClient, add_account, page_client, text
from tests.support.shared_server import Shared, on_shared_loop, shared_server

BASE = "/label/music"
COOKIE = re.compile(r"musicsvc_[0-9a-f]{8}=[\w-]{43}; Path=/; HttpOnly; SameSite=Lax")
ADDRESS = re.compile(r'(?<![\w-])(?:href|action|src|formaction|hx-get|hx-post)="([^"]*)')
# The base path, a place on the same page, or another site.
BEGINNINGS = ("{{ base }}", "{{ static(", "#", "mailto:", "{{ page.url }}", "{{ link.url }}", "{{ page.image }}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def below(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    """A server with a base path."""
    settings = Settings(server=Server(base_path=BASE), metrics=Metrics(allow=("127.0.0.1",)))
    async with shared_server(template, tmp_path_factory.mktemp("below"), settings) as shared:
        yield shared


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(below: Shared) -> AsyncIterator[PageClient]:
    async with page_client(below.client.root) as browser:
        yield browser


def test_every_address_in_a_template_begins_with_the_base_path() -> None:
    found = {
        f"{path.name}: {address}"
        for path in (html.FOLDER / "templates").rglob("*.html")
        for address in ADDRESS.findall(path.read_text("utf-8"))
        if not address.startswith(BEGINNINGS)
    }
    assert found == set()


@on_shared_loop
async def test_only_probes_answer_outside_of_the_base_path(below: Shared) -> None:
    origin = str(URL(below.client.root).origin())
    for probe in ("/healthz", "/readyz", "/metrics"):
        assert [(await below.client.get(f"{root}{probe}")).status for root in (origin, origin + BASE)] == [200, 200]
    paths = ("", "/", "/docs", "/api/v1/albums", "/sign-in", "/label", "/label/musical", f"/x{BASE}/docs", f"/{BASE}/")
    for path in paths:
        answer = await below.client.get(f"{origin}{path}")
        assert (path, answer.status, answer.json) == (
            path,
            HTTPStatus.NOT_FOUND,
            {"status": "error", "message": "There is nothing at this path.", "errors": {}},
        )
    assert (await below.client.get("//1/validate-token")).json["code"] == HTTPStatus.BAD_REQUEST
    insights = await below.client.get("/api/v1/producer-intelligence/insights/none")
    assert insights.json["error"] == "not_found"


@on_shared_loop
async def test_the_first_page_answers_with_and_without_a_slash(below: Shared, visitor: PageClient) -> None:
    first = await visitor.get("")
    assert first.status == HTTPStatus.OK
    assert text(first).count("<h1>") == 1
    assert f"curl {below.client.root}/api/v1/albums" in text(first)
    assert (await visitor.get("/")).body == first.body


@on_shared_loop
async def test_the_session_is_in_a_cookie_of_the_base_path(below: Shared, visitor: PageClient) -> None:
    add_account(below, "cookie@label.test")
    answer = await visitor.sign_in("cookie@label.test")
    assert (answer.status, answer.headers["Location"]) == (303, f"{BASE}/")
    assert COOKIE.match(answer.headers["Set-Cookie"])
    shown = await visitor.get("/settings")
    assert shown.status == HTTPStatus.OK
    changed = await visitor.post("/settings/name", {"display_name": "Clara"})
    assert changed.headers["Location"] == f"{BASE}/settings"
    assert "Your display name is changed." in text(await visitor.get("/settings"))
    visitor.cookies = {"musicsvc": next(iter(visitor.cookies.values()))}  # the name that a server without one uses
    assert (await visitor.get("/settings")).status == HTTPStatus.SEE_OTHER


@on_shared_loop
async def test_installations_on_one_host_do_not_sign_each_other_out(
    below: Shared, template: databases.Template, tmp_path_factory: pytest.TempPathFactory
) -> None:
    others = [Settings(server=Server(base_path=base)) for base in ("/label", "")]
    async with (
        shared_server(template, tmp_path_factory.mktemp("beside"), others[0]) as beside,
        shared_server(template, tmp_path_factory.mktemp("root"), others[1]) as root,
        AsyncExitStack() as stack,
    ):
        cookies: dict[str, str] = {}
        browsers = []
        for shared in (below, beside, root):
            browsers.append(await stack.enter_async_context(page_client(shared.client.root)))
            browsers[-1].cookies = cookies  # of one browser, which sends them to all ports of a host
            add_account(shared, "three@label.test")
            assert (await browsers[-1].sign_in("three@label.test")).status == HTTPStatus.SEE_OTHER
        assert len(cookies) == len(browsers)
        assert [(await browser.get("/settings")).status for browser in browsers] == [200, 200, 200]
        await browsers[1].post("/sign-out")
        assert [(await browser.get("/settings")).status for browser in browsers] == [200, 303, 200]


@on_shared_loop
async def test_signing_in_leads_back_to_the_page_that_was_wanted(below: Shared, visitor: PageClient) -> None:
    add_account(below, "back@label.test")
    asked = await visitor.get("/insights/tracks?sort=-name&q=a%20b")
    assert asked.headers["Location"] == f"{BASE}/sign-in?next=/insights/tracks%3Fsort%3D-name%26q%3Da%2520b"
    path = asked.headers["Location"].removeprefix(BASE)
    assert f'action="{BASE}{path}"' in (await visitor.get(path)).body.decode()
    answer = await visitor.sign_in("back@label.test", path=path)
    assert answer.headers["Location"] == f"{BASE}/insights/tracks?sort=-name&q=a%20b"


@on_shared_loop
async def test_a_refused_form_shows_its_faults_on_its_page(below: Shared, visitor: PageClient) -> None:
    add_account(below, "faults@label.test")
    wrong = await visitor.sign_in("faults@label.test", f"not {PASSWORD}")
    assert wrong.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert 'value="faults@label.test"' in text(wrong)
    assert 'role="alert"' in text(wrong)


@on_shared_loop
async def test_addresses_in_responses_have_the_base_path(below: Shared) -> None:
    world = below.world(["owner"])
    owner = below.client.holding(world.tokens["owner"])
    avatar = (await owner.get("users/me")).json["user"]["avatar"]
    assert avatar.startswith(f"{below.client.root}/avatars/")
    preview = (await owner.post("cover-art/preview", {"template_id": 1, "title": "Air", "artist": "Trio"})).json
    assert preview["preview_url"].startswith(f"{below.client.root}/cover-art/previews/")
    for picture in (avatar, preview["preview_url"]):
        assert (await below.client.get(picture)).headers["Content-Type"].startswith("image/")
    assert (await below.client.get("openapi.json")).json["servers"] == [{"url": below.client.root}]


@on_shared_loop
async def test_responses_from_memory_are_those_of_the_same_path(below: Shared) -> None:
    answers = [await below.client.get("genres", headers={"X-Request-Id": "same"}) for _ in range(4)]
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    metrics = (await below.client.get("/metrics")).body.decode()
    assert 'route="/api/v1/genres"' in metrics
    assert BASE not in metrics


@on_shared_loop
async def test_the_way_to_api_access_begins_with_the_base_path(below: Shared) -> None:
    world = below.world(["without access"])
    refused = await below.client.holding(world.tokens["without access"]).get("/api/v1/users/me")
    assert (refused.status, f"POST {BASE}/api/v1/access-requests." in refused.json["message"]) == (403, True)
