"""Headers that lead on: the next and the previous page of a list, and the end of an endpoint (docs/api.md)."""

from dataclasses import replace
from typing import Any
from urllib.parse import urljoin

import pytest

from musicsvc.config import Server, Settings
from musicsvc.server import app
from musicsvc.server.openapi.models import Models
from musicsvc.server.openapi.operations import operation
from musicsvc.server.routes.deprecation import Deprecated
from musicsvc.server.routes.route import V1, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.shapes.envelope import LONGEST_QUERY, page_links
from tests.server.request.test_first_steps import warm
from tests.support.raw_connection import connected, request
from tests.support.serving import StartServer

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database
ORIGIN = "https://app.example"
ENDING = Deprecated("2026-12-01", "2027-06-30", "https://music.example/guide#albums")
NOTICE = {
    "Deprecation": "@1796083200",
    "Sunset": "Wed, 30 Jun 2027 00:00:00 GMT",
    "Link": '<https://music.example/guide#albums>; rel="deprecation"',
}


def page(number: int, last: int) -> dict[str, Any]:
    return {"status": "success", "pagination": {"current_page": number, "last_page": last}}


@pytest.mark.parametrize(
    ("query", "number", "last", "link"),
    [
        ("", 1, 1, ""),
        ("", 1, 3, '<?page=2>; rel="next"'),
        ("page=3", 3, 3, '<?page=2>; rel="prev"'),
        ("page=2&perPage=5", 2, 3, '<?perPage=5&page=3>; rel="next", <?perPage=5&page=1>; rel="prev"'),
        ("page=9", 9, 3, '<?page=3>; rel="prev"'),
        ("q=a%20b+c&&p%61ge=2&x", 2, 2, '<?q=a%20b+c&x&page=1>; rel="prev"'),
        ('q=<a>";&page=1', 1, 2, '<?q=%3Ca%3E%22%3B&page=2>; rel="next"'),
        ("q=\udcc3\udca9\r\n", 1, 2, '<?q=%C3%A9%0D%0A&page=2>; rel="next"'),
        ("q=" + "x" * (LONGEST_QUERY - 1), 1, 2, ""),
    ],
)
def test_links_keep_all_other_parameters(query: str, number: int, last: int, link: str) -> None:
    assert page_links(page(number, last), query) == link


def test_what_is_no_page_has_no_links() -> None:
    assert page_links({"status": "success", "album": {"id": 1}, "albums": [1]}, "page=2") == ""


async def test_a_list_is_read_by_its_links_whichever_way_it_is_answered(
    start_server: StartServer, world: dict[str, str]
) -> None:
    server = Server(base_path="/label/music", cors_origins=(ORIGIN,))
    client = (await start_server(Settings(server=server))).holding(world["demo"])
    sent = f"Authorization: Bearer {client.token}"
    address, names, links = f"{client.root}{V1}/genres?perPage=3&kind=x%20y", [], []
    async with connected(client.root.removesuffix(server.base_path)) as wire:
        while address:
            target = address[address.index("/label") :]
            answers = [await client.get(address), await client("HEAD", address)]
            tag = f"If-None-Match: {answers[0].headers['ETag']}"
            answers += [
                *await warm(client, wire, request("GET", target, sent)),
                *await warm(client, wire, request("GET", target, sent, tag)),
            ]
            assert [*dict.fromkeys(answer.status for answer in answers)] == [200, 304]
            (link,) = {answer.headers.get("Link", "") for answer in answers}
            links.append(link)
            names += [row["name"] for row in answers[0].json["pagination"]["data"]]
            following = [part for part in link.split(", ") if part.endswith('; rel="next"')]
            address = urljoin(address, following[0][1:].partition(">")[0]) if following else ""
    assert names == [row["name"] for row in (await client.get("genres?perPage=100")).json["pagination"]["data"]]
    assert len(names) > len(links) > 2
    assert links[1] == '<?perPage=3&kind=x%20y&page=3>; rel="next", <?perPage=3&kind=x%20y&page=1>; rel="prev"'
    exposed = (await client.get("genres", headers={"Origin": ORIGIN})).headers["Access-Control-Expose-Headers"]
    assert {"Link", "Deprecation", "Sunset"} <= {*exposed.split(", ")}


@pytest.fixture
def deprecated(monkeypatch: pytest.MonkeyPatch) -> Route:
    """Return the row of a list that is deprecated in the table of the service."""
    (row,) = (route for route in ROUTES if (route.method, route.path) == ("GET", f"{V1}/genres"))
    ending = replace(row, deprecated=ENDING)
    monkeypatch.setattr(app, "ROUTES", [ending if route is row else route for route in ROUTES])
    return ending


async def test_every_response_of_a_deprecated_endpoint_says_when_it_ends(
    deprecated: Route, start_server: StartServer, world: dict[str, str]
) -> None:
    client = (await start_server()).holding(world["demo"])
    async with connected(client.root) as wire:
        raw = request("GET", f"{deprecated.path}?perPage=3", f"Authorization: Bearer {client.token}")
        listed = await warm(client, wire, raw)
    both = NOTICE | {"Link": f'{NOTICE["Link"]}, <?perPage=3&page=2>; rel="next"'}
    assert all(both.items() <= answer.headers.items() for answer in listed)
    unseen = await client.holding("msvc_none").get("genres")
    refused = await client.get("genres?page=0")
    assert (unseen.status, refused.status) == (401, 422)
    assert NOTICE.items() <= unseen.headers.items()
    assert NOTICE.items() <= refused.headers.items()
    others = await client.get("albums")
    assert not {"Deprecation", "Sunset"} & others.headers.keys()


def test_the_document_says_that_an_endpoint_is_deprecated(deprecated: Route) -> None:
    described = operation(deprecated, Models([deprecated]))
    assert described["deprecated"] is True
    assert "Deprecated since 2026-12-01; ends on 2027-06-30." in described["description"]
    assert {"Deprecation", "Sunset", "Link"} <= described["responses"]["200"]["headers"].keys()
    listed = operation(replace(deprecated, deprecated=None), Models([deprecated]))
    assert "deprecated" not in listed
    assert {"Deprecation", "Sunset", "Link"} & listed["responses"]["200"]["headers"].keys() == {"Link"}


def test_what_is_deprecated_ends_later_than_it_is_announced() -> None:
    for route in ROUTES:
        assert route.deprecated is None or route.deprecated.since < route.deprecated.ends, route.path
