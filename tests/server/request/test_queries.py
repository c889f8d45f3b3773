"""The number of database queries of an answer does not grow with its rows."""

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import MINUTE, MovableClock
from musicsvc.config import Settings
from musicsvc.server.responses.large import ALBUMS
from musicsvc.server.routes.route import INSIGHTS, V1, Access, Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import Pages
from musicsvc.store.catalog import albums, artists, changes, tracks
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import MOST_ALBUMS
from musicsvc.store.listens.matching import Listen
from musicsvc.store.listens.receiving import receive
from musicsvc.store.messaging import notifications
from musicsvc.store.playlists import collections
from musicsvc.store.plays import ingest
from musicsvc.store.plays.periods import day_of, to_date
from tests.paging import world as worlds
from tests.paging.lists import LISTS
from tests.paging.world import World
from tests.rights.table import endpoint
from tests.support.query_count import count_reads, queries
from tests.support.serving import Client, StartServer

MANY = 20  # rows; the insights list ten tracks and albums of an artist
MOST = 9  # queries of a page
# Queries of a longer period more: whole weeks and whole months have rows of their own. Milestones take two queries for
# each that was reached; the owner of many reached one.
LONGER = 3
EXPORT = f"{INSIGHTS}/export"
PAGED = [route for route in ROUTES if route.query is not None and issubclass(route.query, Pages)]
# Every other read whose answer has rows, requested by an owner of one row and by an owner of many.
UNPAGED: Mapping[str, Any] = {
    f"GET {V1}/users/search?query=fan&limit={{rows}}": None,
    f"GET {V1}/search?q=a": None,
    f"GET {V1}/changes?since={{cursor}}": None,
    f"GET {V1}/albums/{{album}}?with=genres,tags": None,
    f"GET {V1}/tracks/{{track}}": None,
    f"GET {V1}/collections/{{collection}}": None,
    f"GET {V1}/notifications/me/subscriptions": None,
    f"GET {INSIGHTS}/tracks/{{track}}/charts?timeframe={{timeframe}}": None,
    f"GET {INSIGHTS}/tracks/{{track}}/realtime": None,
    f"GET {INSIGHTS}/albums/{{album}}": None,
    f"GET {INSIGHTS}/albums/{{album}}/charts?timeframe={{timeframe}}": None,
    f"GET {INSIGHTS}/artists/{{artist}}": None,
    f"GET {INSIGHTS}/artists/{{artist}}/charts?timeframe={{timeframe}}": None,
    f"GET {INSIGHTS}/artists/{{artist}}/collaborations": None,
    f"GET {INSIGHTS}/tracks/{{track}}/hours?period={{period}}": None,
    f"GET {INSIGHTS}/tracks/{{track}}/milestones": None,
    f"GET {INSIGHTS}/albums/{{album}}/hours?period={{period}}": None,
    f"GET {INSIGHTS}/albums/{{album}}/milestones": None,
    f"GET {INSIGHTS}/artists/{{artist}}/hours?period={{period}}": None,
    f"GET {INSIGHTS}/artists/{{artist}}/milestones": None,
    f"GET {INSIGHTS}/albums/{{album}}/release?against={{against}}": None,
    f"GET {INSIGHTS}/missing-tracks": None,
    f"GET {INSIGHTS}/find?q=a": None,
    f"GET {INSIGHTS}/compare?kind=artists&ids={{compared}}&period={{period}}": None,
    f"GET {INSIGHTS}/movers?kind=tracks&limit=50&period={{period}}": None,
    f"GET {INSIGHTS}/tracks/{{track}}/explain?period={{period}}": None,
    f"GET {INSIGHTS}/albums/{{album}}/explain?period={{period}}": None,
    f"GET {INSIGHTS}/artists/{{artist}}/explain?period={{period}}": None,
    f"POST {EXPORT}/csv": {"type": "tracks"},
    f"POST {EXPORT}/json": {"type": "albums"},
    f"POST {EXPORT}/xlsx": {"type": "artists"},
    f"POST {EXPORT}/report": {"include_charts": True},
    f"POST {EXPORT}/pdf": {},
}
CONSTANT = {f"GET {V1}/cover-art/templates", f"GET {EXPORT}/formats", f"GET {V1}/openapi.json"}


def shows_rows(route: Route) -> bool:
    """Return whether an answer of this read can have rows."""
    if route.writes or route.family in {Family.PLAIN, Family.PAGE, Family.LISTENS, Family.TOOLS}:
        return False
    return route.answer is None or '"array"' in json.dumps(route.answer.model_json_schema())


def test_every_read_that_shows_rows_is_asked_below() -> None:
    router = Router(ROUTES)
    unpaged = [asked.partition("?")[0].replace("{", "").replace("}", "").split() for asked in UNPAGED]
    asked = {*map(endpoint, PAGED), *(endpoint(router.match(*each)[0]) for each in unpaged), *CONSTANT}
    assert asked == {endpoint(route) for route in ROUTES if shows_rows(route)}


@pytest.fixture
async def uncached(start_server: StartServer) -> Client:
    return await start_server(Settings(server={"answer_cache": 0}))


@pytest.mark.slow
async def test_a_page_of_many_rows_takes_as_many_queries_as_one_of_one_row(
    uncached: Client, store: Store, clock: MovableClock
) -> None:
    world = store.write(partial(worlds.build, uncached.root, clock.now())).result()
    found = {}
    for route in PAGED:
        view = next(view for view in LISTS[route.path](world) if len(view.rows) > MANY)
        for token in (world.tokens["ann"], *([None] if route.access is Access.PUBLIC else [])):
            path = f"GET {V1}/{view.path}?perPage="
            many = ALBUMS if route.cost.nests_tracks else 100  # albums are loaded in groups
            asked = [await count(store, uncached.holding(token), f"{path}{size}") for size in (1, many)]
            found[route.path, token is None] = asked
        with queries(store) as made:
            await uncached.holding(world.tokens["ann"]).get(f"{view.path}?perPage=1&page=2")
        skipping = [event.sql for event in made if "OFFSET" in event.sql]
        assert [skips_keys_alone(sql) for sql in skipping] == [True], (route.path, skipping)
    assert {place: asked for place, asked in found.items() if not 0 < asked[1] <= asked[0] <= MOST} == {}


def skips_keys_alone(sql: str) -> bool:
    """Return whether the statement, which ends with OFFSET, selects one column only."""
    return re.fullmatch(r'SELECT "\w+"\."\w+" FROM .* OFFSET (\?|%s)', sql) is not None


@pytest.mark.slow
async def test_an_answer_of_many_rows_takes_as_many_queries_as_one_of_one_row(
    uncached: Client, store: Store, clock: MovableClock
) -> None:
    world = worlds.World(uncached.root, clock.now())
    many, one = (
        store.write(partial(add_owner, world, rows)).result() for rows in (MANY, 1)
    )  # one has changes after many
    owners = one, many
    found = {}
    for asked, body in UNPAGED.items():
        found[asked] = [
            await count(store, uncached.holding(owner["token"]), asked.format(**owner), body) for owner in owners
        ]
    assert {place: asked for place, asked in found.items() if not 0 < asked[1] <= asked[0] + LONGER} == {}


async def count(store: Store, client: Client, asked: str, body: Any = None) -> int:
    """Count the queries of an answer: the fewest of two, because jobs of the server may read meanwhile."""
    found: list[int] = []
    for _ in range(2):
        with queries(store) as made:
            method, path = asked.split()
            answer = await client(method, path, body)
        assert answer.status == 200, (asked, answer.body)
        found.append(count_reads(made))
    return min(found)


def add_owner(world: World, rows: int) -> dict[str, Any]:
    """Create an account with this many of each object, played and shared with another artist; in a unit of work."""
    cursor = changes.since(None).cursor
    accounts = [worlds.add_account(world, f"fan {rows} {each}") for each in range(rows)]
    token, owner = accounts[0]
    others = [artists.create(f"Artist {each}", None, None, now=world.now, actor=owner).id for each in range(rows)]
    main = artists.create("Main", None, None, now=world.now, actor=owner).id
    fields = {"name": "Album", "release_date": to_date(day_of(world.now) - rows).isoformat()}
    records = [albums.create(fields, main, [f"word {rows}"], now=world.now, actor=owner).id for _ in others]
    made = []
    for album in records:
        for on in {album, records[0]}:
            values = {"name": "Track", "duration": 1, "album_id": on}
            words = [f"tag {rows} {each}" for each in range(rows)]
            credit = [main, *others]
            made.append(
                tracks.create(values, credit, genre=f"Genre {album}", tag_names=words, now=world.now, actor=owner).id
            )
    heard = [ingest.ReportedPlay(track, world.now, "fan") for track in made]
    minutes = range(6 * rows + 100)  # reach a milestone
    heard += [ingest.ReportedPlay(made[0], world.now - each * MINUTE, "fan") for each in minutes]
    ingest.report(heard, now=world.now, actor=owner._replace(reports_plays=True))
    notifications.update_choices(owner.user_id, [(f"n{each}", {"email": True}) for each in range(rows)])
    for _, listener in [*accounts, *(worlds.add_account(world, f"more {rows} {each}") for each in range(5))]:
        lost = [Listen(world.now - each * MINUTE, "Main", f"Lost {each}") for each in range(rows)]
        receive(lost, [None] * rows, now=world.now, actor=listener, accepted=True, daily=600)
    collection = collections.create("All", None, made, now=world.now, actor=owner).id
    subjects = {"artist": main, "album": records[0], "track": made[0], "collection": collection}
    against = ",".join(map(str, records[1 : MOST_ALBUMS + 1]))
    periods = {"timeframe": "90d", "period": "90-days"} if rows == 1 else {"timeframe": "1y", "period": "1-year"}
    compared = ",".join(map(str, [main, others[0]]))
    more = {"against": against, "compared": compared}
    return subjects | periods | more | {"token": token, "rows": rows, "cursor": cursor}
