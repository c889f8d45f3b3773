"""Every endpoint and page answers alike before a copy to the other kind of database, after it, and after one back."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.server.routes.route import SAFE, Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.copying import compare, copy
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Comment, Listener, Playlist, Track, User
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.schema import schema
from musicsvc.store.seeding import synthetic
from tests.conftest import NOW
from tests.rights.pages import ADMINISTRATOR, OWNER, PageWorld
from tests.rights.pages import right as right_of
from tests.rights.table import RIGHTS, endpoint, key
from tests.rights.world import World
from tests.support import databases, every_table
from tests.support.endpoint_cases import TESTED_ROUTES, ValidRequest
from tests.support.page_client import page_client
from tests.support.serving import Answer, Client, running
from tests.support.shared_server import Shared

MANAGER = 1
SIZES = [
    pytest.param(300, 8_000, 12, marks=pytest.mark.slow(seconds=40), id="small"),
    pytest.param(23_700, 1_000_000, 24, marks=pytest.mark.long, id="large"),  # 28,000 tracks with those of other worlds
]
BATCH = 50_000
SPAN = 365 * DAY
FIRST = 100_000  # of the ids of listeners
STRANGER = "stranger"
QUERIES = (
    "",
    "?perPage=7&page=2",
    "?perPage=50",
    "?page=3",
    "?q=the",
    "?query=a&limit=5",
    "?period=30-days",
    "?timeframe=1y",
    "?from=2025-06-01&to=2026-01-31",
    "?with=album",
    "?sort=plays",
    "?q=%F0%9F%8E%A7",
)
# They show the machine and the kind of the database, or calls and events that are stored some time after a request.
APART = {
    *("GET /admin/health", "GET /admin/backups", "POST /admin/backups", "GET /metrics"),
    *("GET /admin/activity", "POST /settings/data"),
}
MODELS = {"album": Album, "artist": Artist, "track": Track, "comment": Comment, "playlist": Playlist, "user": User}
# Random values, cursors of a database, values of a token that was created, and times of use, which are written some
# time after a request.
CHANGING = re.compile(
    rb'<code>\w{4}</code>|"last_four":"\w{4}"|msvc_\w{46}|"token-value-label">[0-9a-f-]{36}|/password/[\w-]{20,}'
    rb'|name="form_token" value="\w+|"last_used_at":(?:null|"[^"]*")|"cursor":"[\w-]+"'
)
API_ROUTES = [route for route in TESTED_ROUTES if endpoint(route) not in APART]
# Imports come last: the server checks uploaded files meanwhile, and PostgreSQL does not use the ids of a check again.
PAGE_ROUTES = sorted(
    (route for route in ROUTES if route.family is Family.PAGE and endpoint(route) not in APART),
    key=lambda route: "/import" in route.path,
)


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize(("tracks", "plays", "per_route"), SIZES)
async def test_responses_are_the_same_on_every_copy(
    template: databases.Template, tmp_path: Path, tracks: int, plays: int, per_route: int
) -> None:
    clock = MovableClock(NOW, speed=0)
    first = f"sqlite:///{tmp_path / 'first' / 'musicsvc.db'}"
    requests = await create(first, tracks, plays, per_route, clock)
    assert len(requests) >= 1_500
    asked = {(each.method, each.path) for each in requests}
    assert len(ROUTES) <= len(asked)
    with databases.Maker(template, tmp_path) as maker:
        second = maker.make(migrated=False)
        third = f"sqlite:///{tmp_path / 'third' / 'musicsvc.db'}"
        for source, target in ((first, second), (second, third)):
            with copy.connect(source) as opened:
                assert copy.copy(opened, target).complete
            with copy.connect(source) as one, copy.connect(target) as other:
                assert compare.compare(one, other).equal

        expected, *copies = [await responses(url, requests, clock) for url in (first, second, third)]

    for found in copies:
        assert differences(requests, expected, found) == []


async def create(url: str, tracks: int, plays: int, per_route: int, clock: MovableClock) -> list[Sent]:
    """Create a database with rows in every table, a catalog and plays. Return requests about it."""
    schema.create(url)
    every_table.fill_log(url)
    with opening.connect(url) as store:
        store.write(every_table.fill).result()
        fill(store, tracks, plays, manager=MANAGER, now=NOW)
        async with running(store, clock) as client:
            return Corpus(Shared(client, store, clock), MANAGER, per_route).requests


async def responses(url: str, requests: list[Sent], clock: MovableClock) -> list[tuple[object, ...]]:
    with opening.connect(url) as store:
        async with running(store, clock) as client:
            return await play(client, requests)


def fill(store: Store, tracks: int, plays: int, *, manager: int, now: int) -> None:
    """Create about this number of tracks, managed by an account, and plays of them in the year before `now`."""
    synthetic.create(store, tracks / synthetic.TRACKS, 1, on_progress=lambda *_: None)
    chance = random.Random(plays)
    people = range(1, max(2, plays // 20))
    store.write(partial(_add_people, people, manager)).result()
    ids = store.read(lambda: [track.id for track in Track.select().order_by(Track.id)]).result()
    weights = list(accumulate(1 / rank for rank in range(1, len(ids) + 1)))
    draw: Callable[[int], list[int]] = lambda count: chance.choices(ids, cum_weights=weights, k=count)  # noqa: E731 - short
    step = SPAN // plays
    for first in range(0, plays, BATCH):
        rows = [
            PlayRow(at // SLOT, track, chance.choice(people) + FIRST, b"", at, chance.randrange(300_000), 0)
            for at, track in zip(
                range(now - SPAN + first * step, now, step), draw(min(BATCH, plays - first)), strict=False
            )
        ]
        store.write(partial(_record, rows)).result()


def _add_people(people: range, manager: int) -> None:
    bulk.insert(Listener, ["id", "key"], [(FIRST + n, f"opaque:person {n}") for n in people])
    Artist.update(manager=manager).where(Artist.manager.is_null()).execute()


def _record(rows: list[PlayRow]) -> None:
    taken = ingest.record(rows)
    for _ in range(0, len(rows), 1_000):
        counting.roll_up(min(taken, 1_000))


class Sent(NamedTuple):
    """A request. `form`: the fields of a page's form, None for the API. `session`: the cookie of a browser."""

    method: str
    path: str
    token: str | None = None
    body: Any = None
    form: Any = None
    session: str | None = None
    page: bool = False


class Corpus:
    """The requests, and the subjects that they are about, which are created in the database of a running server."""

    def __init__(self, shared: Shared, manager: int, per_route: int, seed: int = 1) -> None:
        """`per_route`: how often the account `manager` requests each endpoint that reads."""
        self._shared = shared
        self._chance = Random(seed)
        self._ids = shared.store.read(lambda: {name: _ids(model) for name, model in MODELS.items()}).result()
        manages = partial(tokens.create, name="corpus", now=shared.clock.now())
        token = shared.store.write(lambda: manages(users.get(manager))[1]).result()
        world = World(shared.store, shared.clock, (OWNER, STRANGER))
        reads = [route for route in API_ROUTES if route.method in SAFE]
        self.requests = [
            *(self._read(route, token, number) for route in reads for number in range(per_route)),
            *(each for route in API_ROUTES for each in self._valid(route, world)),
            *(each for number, route in enumerate(PAGE_ROUTES) for each in self._page(route, number)),
        ]

    def _read(self, route: Route, token: str, number: int) -> Sent:
        """Return a request of an endpoint that reads, about any row of the database."""
        noun = re.search(r"/(album|artist|track|comment|playlist|user)s?/\{", route.path)
        ids = self._ids[noun[1]] if noun else range(1, 9)
        path = re.sub(r"\{\w+\}", lambda _: str(self._chance.choice(ids)), route.path)
        return Sent("GET", path + QUERIES[number % len(QUERIES)], token)

    def _valid(self, route: Route, world: World) -> Iterator[Sent]:
        for right in RIGHTS[key(route)].values():
            valid = ValidRequest(world, route, right)
            for token in (None, world.tokens[STRANGER], world.tokens[OWNER]):
                yield Sent(valid.method, valid.path + valid.query, token, valid.body)

    def _page(self, route: Route, number: int) -> Iterator[Sent]:
        who = ADMINISTRATOR if route.access is Access.ADMIN else OWNER
        world, right = PageWorld(self._shared, number, who), right_of(route)
        values = world.do(lambda: right.make(world))
        path = re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), route.path) + right.query
        form = None if route.method in SAFE else dict(right.form(world))
        for session in (None, world.sessions[who]):
            yield Sent(route.method, path, form=form, session=session, page=True)


def _ids(model: Any) -> list[int]:
    return [row.id for row in model.select(model.id).order_by(model.id)]


async def play(client: Client, requests: list[Sent]) -> list[tuple[Any, ...]]:
    """Send the requests one by one. Return the status, the type and the body of each response, without random parts."""
    found = []
    async with page_client(client.root) as browser:
        for each in requests:
            if not each.page:
                answer = await client.holding(each.token)(each.method, each.path, each.body)
            else:
                browser.cookies = {} if each.session is None else {"musicsvc": each.session}
                answer = await (browser.get(each.path) if each.form is None else browser.post(each.path, each.form))
            found.append(_comparable(answer, client.root))
    return found


def _comparable(answer: Answer, root: str) -> tuple[Any, ...]:
    body = CHANGING.sub(b"*", answer.body.replace(root.encode(), b"ROOT"))
    return answer.status, answer.headers.get("Content-Type"), answer.headers.get("Location"), body


def differences(requests: list[Sent], one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> list[str]:
    """Return a line for each request with different responses, with the part of the body that differs."""
    found = []
    for sent, (*head, body), (*other_head, other_body) in zip(requests, one, other, strict=True):
        if (head, body) != (other_head, other_body):
            at = next((at for at, pair in enumerate(zip(body, other_body, strict=False)) if len({*pair}) > 1), 0)
            parts = [part[max(at - 40, 0) : at + 60] for part in (body, other_body)]
            found.append(f"{sent.method} {sent.path}: {head} {other_head} {parts}")
    return found
