"""Every page of the table with every kind of visitor: rights, headers, forms from other sites, tokens of the API."""

import re
from itertools import count

import pytest

from musicsvc.server.routes.pages import ACCESS
from musicsvc.server.routes.route import SAFE, Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from tests.rights.pages import OWNER, PAGES, REVOKED, VISITORS, PageWorld, ask, path_of, right, who_may
from tests.rights.table import endpoint
from tests.support.page_client import page_client, text
from tests.support.shared_server import Shared, on_shared_loop

sqlite = pytest.mark.only_on("sqlite")  # no query depends on what these test
ALL = [route for route in ROUTES if route.family is Family.PAGE]
ROWS = [route for route in ALL if endpoint(route) in PAGES]
each_page = pytest.mark.parametrize("route", ROWS, ids=endpoint)
each_shown = pytest.mark.parametrize("route", [route for route in ROWS if route.method in SAFE], ids=endpoint)
ERROR = 400  # the first status of an error
FORMS = [route for route in ROWS if route.method not in SAFE]
EACH_TIME = re.compile(  # what downloads, shows something else each time, or ends the session of the form itself
    r"/insights/.*export/\w+|/settings/(data|delete|sessions/\{id\}/end)|/import|.*/(password-link|withdraw-plays)"
)
ONCE = [
    route
    for route in FORMS
    if route.access is not Access.OPEN and (route.path == ACCESS or right(route).status < ERROR)
    if not EACH_TIME.fullmatch(route.path)
]
each_form = pytest.mark.parametrize("route", FORMS, ids=endpoint)
NUMBERS = count()
SECRET = re.compile(r"msvc_|[0-9a-f]{8}-[0-9a-f]{4}-|/password/[\w-]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@pytest.fixture(scope="module")
def token(shared: Shared) -> str:
    """The token of an account with API access."""
    return str(shared.world(()).tokens[OWNER])


@pytest.fixture(scope="module")
def worlds(shared: Shared) -> dict[str, PageWorld]:
    """A world for each kind of visitor, for requests that change nothing."""
    return {who: PageWorld(shared, next(NUMBERS), who) for who in VISITORS}


@each_page
@on_shared_loop
async def test_each_kind_of_visitor_is_answered_as_the_table_says(
    shared: Shared, token: str, worlds: dict[str, PageWorld], route: Route
) -> None:
    found = {}
    async with page_client(shared.client.root) as browser:
        browser.headers["Authorization"] = f"Bearer {token}"  # means nothing on pages
        for who in VISITORS:
            kept = route.method in SAFE
            world = worlds[who] if kept else PageWorld(shared, next(NUMBERS), who)
            answer = await ask(browser, world, route, who)
            found[who] = answer.status
            assert answer.headers["Content-Security-Policy"] == POLICY
            assert answer.headers["Referrer-Policy"] == "same-origin"
            assert answer.headers["Cache-Control"] == "no-store"
    assert found == right(route).expected(route)


@pytest.mark.slow
@sqlite
@each_shown
@on_shared_loop
async def test_head_is_answered_as_get_without_the_body(shared: Shared, route: Route) -> None:
    same = ("Content-Length", "Content-Type", "Content-Security-Policy", "Cache-Control", "Location", "HX-Redirect")
    async with page_client(shared.client.root) as browser:
        # Compressed, the page's length would depend on the random token of its form.
        for who, asked in ((who_may(route), {}), ("signed out", {}), ("signed out", {"HX-Request": "true"})):
            world = PageWorld(shared, next(NUMBERS), who)
            path = path_of(world, route)
            for _ in range(20):
                found = []
                for request in (browser.get, browser.head, browser.get):
                    browser.cookies = {"musicsvc": world.sessions[who]} if who in world.sessions else {}
                    found.append(await request(path, **{"Accept-Encoding": "identity"}, **asked))
                got, head, again = found
                if len(again.body) == len(got.body):  # else the page changed: the activity log, for example
                    break
            assert head.status == got.status
            assert [head.headers.get(name) for name in same] == [got.headers.get(name) for name in same]
            assert (head.headers["Content-Length"], head.body) == (str(len(got.body)), b"")


@sqlite
@pytest.mark.parametrize("route", ONCE, ids=endpoint)
@on_shared_loop
async def test_a_form_that_is_sent_twice_is_told_as_done_without_its_secret(shared: Shared, route: Route) -> None:
    who = REVOKED if route.path == ACCESS else who_may(route)
    world = PageWorld(shared, next(NUMBERS), who)
    async with page_client(shared.client.root) as browser:
        browser.cookies = {"musicsvc": world.sessions[who]}
        path, fields = path_of(world, route), dict(right(route).form(world))
        sent = fields | {"form_token": await browser.form_token()}
        first, again = [await browser.post(path, sent) for _ in range(2)]
        assert (first.status, again.status) == (right(route).expected(route)[who], 303)
        assert first.headers.get("Location") in {None, again.headers["Location"]}
        shown = text(await browser.get(again.headers["Location"]))
        assert first.status == 303 or ("already. " in shown and not SECRET.search(shown))


def test_the_table_is_complete() -> None:
    assert {endpoint(route) for route in ALL} == PAGES.keys(), "say in tests/rights/pages.py who may use these"


@pytest.mark.slow
@sqlite
@each_form
@on_shared_loop
async def test_forms_of_other_sites_and_of_other_browsers_are_refused(shared: Shared, route: Route) -> None:
    world = PageWorld(shared, next(NUMBERS), who_may(route))
    path, fields = path_of(world, route), dict(right(route).form(world))
    async with page_client(shared.client.root) as other, page_client(shared.client.root) as browser:
        others = await other.form_token()
        browser.cookies = {"musicsvc": world.sessions[who_may(route)]}
        own = await browser.form_token()
        bad_tokens = [others, "", "00" * 48, own[:-2] + ("00" if own[-2:] != "00" else "11"), "x", own + "é"]
        few = 1 if route in FORMS[1:] else None  # every variant for the first form
        refused = [await browser.post(path, {**fields, "form_token": token}) for token in bad_tokens[:few]]
        foreign: list[dict[str, str]] = [
            {"Origin": "https://evil.test"},
            {"Origin": "null"},
            {"Origin": ""},
            {"Origin": f"{browser.root}.evil.test"},
            {"Origin": "", "Sec-Fetch-Site": "cross-site"},
            {"Origin": "", "Sec-Fetch-Site": "same-site"},
            {"Origin": "", "Referer": f"{browser.root}/"},
        ]
        refused += [await browser.post(path, fields, **headers) for headers in foreign[:few]]
        assert [answer.status for answer in refused] == [403] * len(refused)
        assert "<title>Not allowed" in text(refused[-1])
        # Each was refused for its fault: the same form from here is accepted.
        accepted = await browser.post(path, fields, **{"Origin": "", "Sec-Fetch-Site": "same-origin"})
        assert accepted.status == right(route).expected(route)[who_may(route)]


@sqlite
@each_form
@on_shared_loop
async def test_a_form_must_be_a_form(shared: Shared, route: Route) -> None:
    world = PageWorld(shared, next(NUMBERS), who_may(route))
    async with page_client(shared.client.root) as browser:
        browser.cookies = {"musicsvc": world.sessions[who_may(route)]}
        path = path_of(world, route)
        json = await browser.post(path, right(route).form(world), **{"Content-Type": "application/json"})
        assert json.status == 415
        if route in FORMS[1:]:
            return  # every variant for the first form
        latin = "application/x-www-form-urlencoded; charset=latin-1"
        assert (await browser.post(path, right(route).form(world), **{"Content-Type": latin})).status == 400
        assert (await browser.post(f"{path}&" if "?" in path else path, {"x": "y" * 2**20})).status == 413
