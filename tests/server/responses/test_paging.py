"""Every paged endpoint on a filled database: keys, orders, totals, page ends and shapes, in both tiers."""

import json
import re
from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import V1, Access, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import Pages
from musicsvc.store.engine.store import Store
from tests.paging import world as worlds
from tests.paging.lists import LISTS, View
from tests.paging.world import Row
from tests.support.serving import Answer, Client

PAGED = {route.path: route for route in ROUTES if route.query is not None and issubclass(route.query, Pages)}
TOKENS = f"{V1}/access-tokens"  # which are never an empty list, because a token asks for it
WITHOUT_SUBJECT = [path for path, route in PAGED.items() if route.find is None and path != TOKENS]
SHOWN = {"albums", "artists", "playlists", "tracks"}  # their rows equal the answer of the single resource
FAR = 2**31 - 1
LINK = re.compile(r'[?&]page=(\d+)>; rel="(\w+)"')


def test_every_paged_endpoint_has_an_expectation() -> None:
    assert set(PAGED) == set(LISTS)


@pytest.mark.on_both
@pytest.mark.slow
async def test_every_list_shows_its_rows_in_order_on_pages_of_every_size(
    anonymous: Client, client: Client, store: Store, clock: MovableClock
) -> None:
    for path in WITHOUT_SUBJECT:
        check(await client.get(path), PAGED[path], [], 1, 20)
    world = store.write(partial(worlds.build, anonymous.root, clock.now())).result()
    holders = {name: anonymous.holding(token) for name, token in world.tokens.items()} | {None: anonymous}
    longest = []
    for path, route in PAGED.items():
        views = list(LISTS[path](world))
        filters = {name for view in views for name, _ in parse_qsl(urlsplit(view.path).query)}
        assert filters == set(getattr(route.query, "model_fields", ())) - {"page", "perPage"}, path
        assert (None in {view.caller for view in views}) is (route.access is Access.PUBLIC), path
        for view in views:
            await walk(holders[view.caller], route, view)
        longest.append(max(len(view.rows) for view in views))
    assert min(longest) > 20
    assert len(set(longest)) == len(longest)


async def walk(holder: Client, route: Route, view: View) -> None:
    """Read a whole list in pages of several sizes, and beyond its end; unknown parameters change nothing."""
    for size in sizes(len(view.rows)):
        last = max(1, -(-len(view.rows) // (size or 20)))
        for page in (*range(1, last + 2), FAR):
            name = ("perPage", "per_page")[page % 2]
            query = [f"{name}={size}"] * bool(size) + [f"page={page}"] * (page > 1) + ["x=1", "x=2"] * (page == FAR)
            answer = await holder.get(view.at("&".join(query)))
            check(answer, route, view.rows, page, size or 20)
    noun = route.path.rpartition("/")[2]
    for row in view.rows[:: len(view.rows) // 3 or 1] if noun in SHOWN else ():
        alone = await holder.get(f"{noun}/{row['id']}")
        assert alone.json == {"status": "success", noun.removesuffix("s"): row}


def sizes(total: int) -> set[int | None]:
    """Return the page sizes to test: default, largest, one full page, one row on the second page, several pages."""
    full = [total // pages for pages in range(3, total) if total % pages == 0]
    return {None, 100, *full[:1], *(each for each in (total - 1, total) if 1 <= each <= 100)}


def check(answer: Answer, route: Route, rows: Sequence[Row], page: int, size: int) -> None:
    """Assert that the answer has this page of the rows, and the seven keys of the paginator in order."""
    before = (page - 1) * size
    data = rows[before : before + size]
    last = max(1, -(-len(rows) // size))
    expected = {
        "current_page": page,
        "from": before + 1 if data else None,
        "to": before + len(data) if data else None,
        "per_page": size,
        "last_page": last,
        "total": len(rows),
        "data": data,
    }
    noun = route.path.rpartition("/")[2]
    key = noun if route.path.count("/") == 3 and noun in {"albums", "artists"} else "pagination"
    assert answer.json == {"status": "success", key: expected}, (route.path, page, size)
    wanted = {"next": page + 1 if page < last else 0, "prev": min(page - 1, last)}
    assert {rel: int(to) for to, rel in LINK.findall(answer.headers.get("Link", ""))} == {
        rel: to for rel, to in wanted.items() if to
    }
    assert json.dumps(answer.json) == json.dumps({"status": "success", key: expected}), "the order of the keys"
