"""However many rows an answer has, the database is asked as often."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from musicsvc.server.routes import ROUTES, V1
from musicsvc.server.schemas.fields import Pages
from tests.counting import queries, questions
from tests.world import fill

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.server.route import Route
    from musicsvc.store.database import Store
    from tests.serving import Client

MANY = 50
LISTS = [route for route in ROUTES if route.query is not None and issubclass(route.query, Pages)]
# A small and a large answer of those that list without pages.
UNPAGED = [
    ("users/search?query=person&limit=1", f"users/search?query=person&limit={MANY}"),
    ("albums/2?with=genres,tags,artists,tracks", "albums/1?with=genres,tags,artists,tracks"),
    ("collections/2", "collections/1"),
]


async def test_an_answer_of_50_rows_asks_the_database_as_often_as_one_of_1(
    client: Client, store: Store, clock: Clock
) -> None:
    await fill(client, store, clock, MANY)
    pages = [(f"{path_of(route)}?perPage=1", f"{path_of(route)}?perPage={MANY}") for route in LISTS]
    asked: dict[tuple[bool, str], tuple[int, int]] = {}
    for small, large in [*pages, *UNPAGED]:
        assert rows_of((await client.get(large)).json) in {MANY, 2 * MANY}, large  # tracks have two tags each
        for holder in (client, client.holding(None)):
            if (await holder.get(small)).status != 401:
                both = await count(store, holder, small), await count(store, holder, large)
                asked[holder is client, large] = both
    assert {place: both for place, both in asked.items() if both[0] != both[1]} == {}
    assert max(large for _, large in asked.values()) <= 8


async def test_rows_before_a_page_cost_their_key_and_no_column_join_or_count_of_a_shown_row(
    client: Client, store: Store, clock: Clock
) -> None:
    await fill(client, store, clock, 3)
    for route in LISTS:
        with queries(store) as asked:
            found = (await client.get(f"{path_of(route)}?perPage=1&page=2")).json
        assert rows_of(found), route.path
        skipping = [event.sql for event in asked if "OFFSET" in event.sql]
        assert [skips_keys_alone(sql) for sql in skipping] == [True], (route.path, skipping)


def skips_keys_alone(sql: str) -> bool:
    """Whether the OFFSET is that of a subquery that selects one column."""
    before, _, after = sql.partition("OFFSET")
    if not re.match(r" (\?|%s)\)", after):
        return False
    opened, start = 1, len(before)
    while opened:
        start -= 1
        opened += {")": 1, "(": -1}.get(before[start], 0)
    return re.match(r'\(SELECT "\w+"\."\w+" FROM ', before[start:]) is not None


def path_of(route: Route) -> str:
    """The path within the API, about the first of whatever it names."""
    return route.path.removeprefix(f"{V1}/").replace("{id}", "1")


async def count(store: Store, client: Client, path: str) -> int:
    with queries(store) as asked:
        assert (await client.get(path)).status == 200
    return questions(asked)


def rows_of(value: Any) -> int:
    """The length of the longest list in the answer."""
    if isinstance(value, list):
        return max([len(value), *map(rows_of, value)])
    return max(map(rows_of, value.values()), default=0) if isinstance(value, dict) else 0
