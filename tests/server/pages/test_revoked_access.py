"""An account whose API access was revoked still reads its figures, and changes nothing of the catalog on pages."""

from collections.abc import Mapping
from functools import partial

import pytest
from peewee import Model

from musicsvc.server.routes.editing import ROUTES
from musicsvc.server.routes.route import SAFE, Access, Route, Router
from musicsvc.server.routes.table import ROUTES as ALL
from musicsvc.store.accounts import api_access
from musicsvc.store.models import Album, Artist, Track
from tests.rights.pages import create
from tests.rights.table import endpoint
from tests.support.html_page import HtmlPage
from tests.support.serving import Answer
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

NOUNS = ("artist", "album", "track")
CHANGING = [route for route in ROUTES if any(f"/{noun}/" in route.path for noun in NOUNS)]
MESSAGE = "The account has no API access."


async def ask(person: Person, route: Route, ids: Mapping[str, int], **headers: str) -> Answer:
    noun = next(each for each in NOUNS if f"/{each}/" in route.path)
    path = route.path.format(id=ids[noun])
    if route.method in SAFE:
        return await person.browser.get(path, **headers)
    form = {"name": "Changed", "merge": str(ids[noun]), "into": str(ids[f"another {noun}"])}
    return await person.browser.post(path, form, **headers)


def rows(person: Person) -> list[tuple[object, ...]]:
    """Return the whole catalog."""
    return [row for table in (Artist, Album, Track) for row in person.shared.store.read(partial(_all, table)).result()]


def _all(table: type[Model]) -> list[tuple[object, ...]]:
    return [*table.select().tuples()]


@pytest.fixture
def ids(developer: Person) -> dict[str, int]:
    """Two artists, albums and tracks of the account."""
    return {f"{which}{noun}": _create(developer, noun) for noun in NOUNS for which in ("", "another ")}


def _create(person: Person, noun: str) -> int:
    return int(person.do(lambda user: create(noun, user.id)))


@on_shared_loop
async def test_from_the_next_request_on_nothing_can_be_changed(developer: Person, ids: Mapping[str, int]) -> None:
    assert (await developer.browser.get(f"/insights/track/{ids['track']}/edit")).status == 200
    developer.do(lambda user: api_access.revoke(user, now=2))
    before = rows(developer)
    for route in CHANGING:
        answer = await ask(developer, route, ids)
        assert (answer.status, HtmlPage(answer.body).text.count(MESSAGE)) == (403, 1), endpoint(route)
        json = await ask(developer, route, ids, Accept="application/json")
        assert (json.status, json.json) == (403, {"status": "error", "message": MESSAGE, "errors": {}})
    assert rows(developer) == before
    developer.do(lambda user: api_access.grant(user, now=3))
    form = {"merge": str(ids["another track"]), "into": str(ids["track"])}
    assert (await developer.browser.post("/insights/track/merge", form)).status == 303


@on_shared_loop
async def test_figures_stay_and_no_link_leads_to_what_is_refused(developer: Person, ids: Mapping[str, int]) -> None:
    subjects = [f"/insights/{noun}/{ids[noun]}" for noun in NOUNS]
    pages = ("/", "/insights", "/insights/tracks", "/insights/duplicates?kind=track", *subjects)

    async def offered() -> set[str]:
        """Return the endpoints that need API access to which the pages link."""
        shown = [await developer.browser.get(path) for path in pages]
        assert [answer.status for answer in shown] == [200] * len(pages)
        links = {link.partition("?")[0].partition("#")[0] for answer in shown for link in HtmlPage(answer.body).links()}
        targets = [router.match("GET", link)[0] for link in links if link.startswith("/")]
        return {endpoint(route) for route in targets if route in CHANGING or route.access is Access.DEVELOPER}

    router = Router(ALL)
    assert {"GET /insights/track/{id}/edit", "GET /insights/track/merge", "GET /import"} <= await offered()
    developer.do(lambda user: api_access.revoke(user, now=2))
    assert await offered() == set()
    shared = await developer.browser.post(f"{subjects[2]}/share", {})
    assert shared.status == 201
