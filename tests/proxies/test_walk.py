"""All pages below a base path, behind nginx and Caddy: every link and form leads to a page of the service."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from http import HTTPStatus
from itertools import count
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit

import pytest
import pytest_asyncio

from musicsvc.errors import Failure
from musicsvc.server.routes.route import Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import tokens, users
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures
from tests.proxies.front import PROXIES, Front, front
from tests.rights.pages import PageWorld, ask, right, who_may
from tests.rights.table import endpoint
from tests.rights.world import OWNER
from tests.support import databases, sample_pages
from tests.support.html_page import HtmlPage
from tests.support.page_client import PageClient
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
BASE = "/label/music"
ALIKE = 2  # pages of a route, with the same names in the query, that are visited
PAGES = {endpoint(route): route for route in ROUTES if route.family is Family.PAGE}
SHEET = b"Title,Artist\nAir,Trio\n,Trio\n"  # the second row is refused
NUMBERS = count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROXIES)
async def proxied(
    request: pytest.FixtureRequest, template: databases.Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Front]:
    async with front(request.param, template, tmp_path_factory.mktemp("walk"), base=BASE) as opened:
        yield opened


class Walk:
    """A walk along all links of pages. `reached`: the routes visited; `forms`: those of forms; `faults`: all else."""

    def __init__(self, front: Front, browser: PageClient) -> None:
        self._browser = browser
        self.root = front.origin + front.base
        self._router = Router(ROUTES, front.base)
        self._waiting: list[str] = []
        self._seen: set[str] = set()
        self._alike: Counter[object] = Counter()
        self.reached: set[str] = set()
        self.forms: set[str] = set()
        self.faults: list[str] = []

    def route(self, method: str, url: str, place: str) -> Route | None:
        """Return the route of an address on a page, or None, and note a fault, if the service does not have it."""
        if f"{url}/".startswith(f"{self.root}/"):
            try:
                return self._router.match(method, self._router.local(urlsplit(url).path))[0]
            except Failure:
                pass
        self.faults.append(f"{method} {url} on {place}")
        return None

    def follow(self, address: str, place: str) -> None:
        """Note that a page has this link."""
        url = urldefrag(urljoin(place, address)).url
        if url in self._seen or url.startswith(("mailto:", "data:")):
            return
        self._seen.add(url)
        if (route := self.route("GET", url, place)) is not None:
            alike = endpoint(route), frozenset(re.findall(r"[?&](\w+)=", url))
            self._alike[alike] += 1
            if self._alike[alike] <= ALIKE:
                self._waiting.append(url)

    async def run(self, start: str) -> None:
        self._waiting = [start]
        while self._waiting:
            url = self._waiting.pop(0)
            answer = await self._browser.get(url.removeprefix(self.root))
            route = self.route("GET", url, "")
            assert route is not None
            self.reached.add(endpoint(route))
            if answer.status in {301, 302, 303, 307, 308}:
                self.follow(answer.headers["Location"], url)
            elif answer.status not in {200, 422}:  # a form without what it needs is shown again
                self.faults.append(f"{answer.status}: GET {url}")
            elif answer.headers["Content-Type"].startswith("text/html"):
                self._read(HtmlPage(answer.body), url)

    def _read(self, page: HtmlPage, url: str) -> None:
        form: dict[str, str | None] = {}
        for tag, found in page.attributes:
            form = found if tag == "form" else form
            for name in ("href", "src", "hx-get"):
                other_site = "noopener" in (found.get("rel") or "")
                if (address := found.get(name)) is not None and not other_site:
                    self.follow(address, url)
            action = found.get("action") if tag == "form" else found.get("formaction")
            if action is not None and form.get("method") == "post":
                self._note_form(urljoin(url, action), url)
            elif action is not None:
                self.follow(f"{action}?{urlencode(page.forms.get(action, {}))}", url)

    def _note_form(self, url: str, place: str) -> None:
        if (route := self.route("POST", url, place)) is not None:
            self.forms.add(endpoint(route))


# Forms of pages in other states: test_every_page_and_form_answers_below_the_base_path sends them.
OF_OTHER_STATES = {
    "POST /admin/accounts/{id}/assign-artists",
    "POST /admin/accounts/{id}/reinstate",
    "POST /admin/accounts/{id}/revoke-access",
    "POST /import/{id}/stop",
    "POST /insights/artist/split",
    "POST /insights/artist/{id}/delete",
    "POST /admin/leaving/{id}/dismiss",
    "GET /settings/offers/{id}",
    "POST /settings/offers/{id}/accept",
    "POST /settings/offers/{id}/refuse",
    "POST /settings/offers/{id}/take-back",
    "POST /settings/delete",
    "POST /settings/listens/dismiss",
    "POST /settings/listens/{id}/dismiss",
    "POST /settings/listens/{id}/name",
    "POST /settings/access",
}


async def import_sheet(browser: PageClient) -> None:
    """Import a file with a row that is refused, and leave another one that is checked."""
    for name, wanted in (("first.csv", b"/undo"), ("second.csv", b"/start")):
        sent = await browser.post("/import", {"file": (name, SHEET), "replace": "on"})
        page = sent.headers["Location"].removeprefix(BASE)
        await _shown(browser, page, b"/start")
        if wanted == b"/undo":
            await browser.post(f"{page}/start")
        assert b"/refused.csv" in await _shown(browser, page, wanted)


async def _shown(browser: PageClient, page: str, wanted: bytes) -> bytes:
    """Return the page once it contains this."""
    async with asyncio.timeout(30):
        while wanted not in (body := (await browser.get(page)).body):  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    return body


def load(now: int) -> sample_pages.Sample:
    """Load the sample data, and more of what pages show: a token, another session, another administrator."""
    sample = sample_pages.load(now)
    demo = users.by_email(fixtures.DEMO_EMAIL)
    tokens.create(demo, "laptop", now=now)
    sessions.create(demo, address="127.0.0.2", agent="Tests/2.0", now=now)
    users.create("another@label.test", admin=True, now=now)
    return sample


@on_shared_loop
@pytest.mark.parametrize("proxied", ["nginx", pytest.param("caddy", marks=pytest.mark.long)], indirect=True)
async def test_every_link_and_form_leads_to_a_page_below_the_base_path(proxied: Front) -> None:
    now = proxied.shared.clock.now()
    sample = proxied.shared.store.write(lambda: load(now)).result()
    async with proxied.browser() as browser:
        signed_out = Walk(proxied, browser)
        for name in ("/password/{link}", "/reports/{link}"):
            await signed_out.run(f"{signed_out.root}{sample.path(PAGES[f'GET {name}'])}")
        browser.cookies = {browser.cookie: sample.session}
        await import_sheet(browser)
        walk = Walk(proxied, browser)
        for path in ("", *(f"/insights/{noun}/merge?merge=1&into=2" for noun in ("artist", "album", "track"))):
            await walk.run(walk.root + path)
    assert signed_out.faults + walk.faults == []
    reached = walk.reached | walk.forms | signed_out.reached | signed_out.forms
    assert PAGES.keys() - reached <= OF_OTHER_STATES


@on_shared_loop
async def test_every_page_and_form_answers_below_the_base_path(proxied: Front) -> None:
    """Each redirect leads below the base path, to a page that exists."""
    async with proxied.browser() as browser:
        for name, route in PAGES.items():
            world = PageWorld(proxied.shared, next(NUMBERS), who_may(route))
            answer = await ask(browser, world, route, who_may(route))
            assert (name, answer.status) == (name, right(route).expected(route)[who_may(route)])
            urls = re.findall(rf"{re.escape(proxied.origin)}[^\s\"<]*", answer.body.decode(errors="replace"))
            assert [url for url in urls if not f"{url}/".startswith(f"{browser.root}/")] == [], name  # absolute ones
            if "Location" in answer.headers:
                location = urljoin(f"{browser.root}/", answer.headers["Location"])
                assert location.startswith(f"{browser.root}/"), name
                assert (await browser.get(location.removeprefix(browser.root))).status in {200, 303}, name


@on_shared_loop
async def test_addresses_in_responses_of_the_api_are_below_the_base_path(proxied: Front) -> None:
    holder = proxied.shared.world(()).tokens[OWNER]
    async with proxied.client(token=holder) as client:
        document = (await client.get("openapi.json")).json
        assert document["servers"] == [{"url": client.root}]
        addresses: set[str] = set()
        for path, operations in document["paths"].items():
            if "get" in operations and "{" not in path:
                addresses |= set(re.findall(r'"(https?://[^"]*)"', (await client.get(path)).body.decode()))
        own = {address for address in addresses if address.startswith(proxied.origin)}
        assert len(own) > 3
        for address in own:
            assert f"{address}/".startswith(f"{client.root}/")
            assert (await client.get(address)).status in {200, 301}, address  # the first page may lead to its slash


@on_shared_loop
async def test_the_base_path_without_its_slash_is_the_first_page(proxied: Front) -> None:
    async with proxied.browser() as browser:
        answer = await browser.get("")
        while "Location" in answer.headers:
            location = urljoin(browser.root, answer.headers["Location"])
            assert location == f"{browser.root}/"
            answer = await browser.get("/")
        assert answer.status == HTTPStatus.OK
        assert b'href="/label/music/sign-in"' in answer.body
