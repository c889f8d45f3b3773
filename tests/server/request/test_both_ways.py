"""Every answer that can be sent early equals that of the long way, byte for byte, and takes the way it must take.

Each endpoint whose answer is kept in memory, each kind of caller and each form of a request, from the tables. The
quick tests send each form to a quarter of the endpoints and each endpoint a quarter of the forms; the slow one takes an
eighth of all combinations, with `--long` each.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
import trustme

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.request.first_steps import LONGEST_HEAD
from musicsvc.server.responses.large import UNCOUNTED
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.conftest import NOW, Sample
from tests.rights.table import RIGHTS, Right, endpoint, key, path_of
from tests.rights.world import REFUSED, WHO, World
from tests.support import databases
from tests.support.both_ways import LONG, PLAIN, Form, Pair, two_ways
from tests.support.large_albums import LONGEST

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.only_on("sqlite"),  # on PostgreSQL, both servers count together
]

LARGE = 1  # the album whose tracks have long descriptions
ORIGIN, BASE = "https://app.example", "/label/music"
ARTIST, ENDING, WRONG_SCHEME = "an artist with content", "token that ends soon", "wrong scheme"
CALLERS = (ARTIST, ENDING, WRONG_SCHEME, *WHO)
KEPT = [route for route in ROUTES if route.method == "GET" and (route.cacheable or route.constant)]
FORMS: Mapping[str, Form] = {
    "plain": PLAIN,
    "the tag that the client has": Form(headers=("If-None-Match: {tag}",)),
    "a weak tag among others": Form(headers=('If-None-Match: "a", W/{tag}', 'If-None-Match: "b"')),
    "another tag": Form(headers=('If-None-Match: "0123456789abcdef"',)),
    "any tag": Form(headers=("If-None-Match: *",)),
    "the tag of the other encoding": Form(headers=("If-None-Match: {gzip}",)),
    "gzip": Form(headers=("Accept-Encoding: gzip",)),
    "gzip, with its tag": Form(headers=("Accept-Encoding: gzip, br", "If-None-Match: {gzip}")),
    "brotli": Form(headers=("Accept-Encoding: br",)),
    "identity": Form(headers=("Accept-Encoding: identity",)),
    "no gzip": Form(headers=("Accept-Encoding: gzip;q=0, *",)),
    "JSON accepted": Form(headers=("Accept: application/json",)),
    "HTML accepted": Form(headers=("Accept: text/html,application/xhtml+xml",)),
    "an origin that may read": Form(headers=(f"Origin: {ORIGIN}",)),
    "an origin that may not": Form(headers=("Origin: https://other.example",)),
    "strict": Form(headers=("Prefer: handling=strict",)),
    "a parameter that is unknown": Form(query="un_known=1"),
    "the same, strict": Form(headers=("Prefer: handling=strict",), query="un_known=1"),
    "a request id": Form(headers=("X-Request-Id: mine-7",)),
    "a request id that is not safe": Form(headers=("X-Request-Id: mine 7",)),
    "cookies and a range": Form(headers=("Cookie: a=b", "Range: bytes=0-1", "If-Modified-Since: x")),
    "by a proxy that is trusted": Form(headers=("X-Forwarded-For: 203.0.113.7", "X-Forwarded-Proto: https")),
    "by a proxy over plain HTTP": Form(headers=("X-Forwarded-For: 203.0.113.7",)),
    "under another name": Form(headers=("Host: music.example",)),
    "a head in two packets": Form(LONG, parts=2),
    "two requests in a packet": Form(LONG, count=2),
    "HEAD": Form(LONG, method="HEAD"),
    "the last of the connection": Form(LONG, headers=("Connection: close",), closes=True),
    "HTTP/1.0": Form(LONG, version="1.0", closes=True),
    "HTTP/1.0, kept": Form(LONG, headers=("Connection: keep-alive",), version="1.0"),
    "a body": Form(LONG, body=b"{}"),
    "a body without bytes": Form(headers=("Content-Length: 0",)),
    "an upgrade": Form(LONG, headers=("Connection: Upgrade", "Upgrade: h2c")),
    "a long head": Form(LONG, headers=(f"X-Long: {'x' * LONGEST_HEAD}",)),
}
COUNTED = Limits(local=True, token="1000000/hour", address="1000000/hour")


class Case(NamedTuple):
    """Requests of one kind of caller."""

    name: str
    route: Route
    target: str
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """The servers of the module, started when they are first used, and what is requested of them."""

    start: Callable[[str], Awaitable[Pair]]
    store: Store
    clock: MovableClock
    world: World
    paths: Mapping[tuple[str, str], str]  # by right and caller

    async def pair(self, name: str = "plain") -> Pair:
        return await self.start(name)

    def cases(self, who: str) -> Iterator[Case]:
        """Yield the requests of a caller. Who is refused requests few of what needs a token."""
        for number, (route, name, _) in enumerate(RIGHTS_OF_KEPT):
            if who not in REFUSED or route.access in {Access.OPEN, Access.PUBLIC} or number % 7 == 0:
                yield Case(f"{who}: {name}", route, self.paths[name, who], self.headers(who))

    def headers(self, who: str) -> tuple[str, ...]:
        if (value := self.world.tokens[who]) is None:
            return ()
        return (f"Authorization: {'Basic' if who == WRONG_SCHEME else 'Bearer'} {value}",)


def of_kept() -> Iterator[tuple[Route, str, Right]]:
    for route in KEPT:
        for case, right in RIGHTS[key(route)].items():
            yield route, f"{endpoint(route)} {case}".strip(), right


RIGHTS_OF_KEPT = list(of_kept())


def populate(store: Store, clock: MovableClock, artist: str) -> World:
    """Create the callers."""
    world = World(store, clock)

    def more() -> None:
        found = tokens.find_by_value(artist)
        assert found is not None
        world.ids[ARTIST] = world.ids[WRONG_SCHEME] = found.user.id
        world.tokens[ARTIST] = world.tokens[WRONG_SCHEME] = artist
        user = users.create(world.email(ENDING), api_access=True, now=world.now)
        world.ids[ENDING], world.tokens[ENDING] = user.id, tokens.create(user, "ends", days=13, now=world.now)[1]
        Track.update(description=LONGEST).where(Track.album == LARGE).execute()

    world.do(more)
    return world


def settings_of(name: str, folder: Path, authority: trustme.CA) -> tuple[Settings, ssl.SSLContext | None]:
    """Return the settings of servers, and for TLS what its clients trust."""
    if name == "TLS":
        files = [folder / "cert.pem", folder / "key.pem"]
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(str(files[0]))
        issued.private_key_pem.write_to_path(str(files[1]))
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        return Settings(limits=COUNTED, server=Server(tls_cert=files[0], tls_key=files[1])), trusting
    server = {
        "plain": Server(cors_origins=(ORIGIN,)),
        "base path": Server(base_path=BASE),
        "proxy": Server(public_url="https://music.example.test", local_http=False),
    }[name]
    return Settings(limits=COUNTED, server=server), None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    template: databases.Template, sample: Sample, tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA
) -> AsyncIterator[Site]:
    """Have one database for the module. Nothing is written to it after the first request."""
    folder, clock = tmp_path_factory.mktemp("both"), MovableClock(NOW, speed=0)
    pairs: dict[str, Pair] = {}
    async with AsyncExitStack() as stack:
        maker = stack.enter_context(databases.Maker(template, folder, sample.url))
        store = stack.enter_context(opening.connect(maker.make()))
        template.make_log(store.url)
        world = populate(store, clock, sample.made.tokens["demo"])
        paths = {
            (name, who): path_of(route, world.do(lambda right=right, who=who: right.make(world, who))) + right.query  # type: ignore[misc]
            for route, name, right in RIGHTS_OF_KEPT
            for who in CALLERS
        }

        async def start(name: str) -> Pair:
            if name not in pairs:
                settings, trusting = settings_of(name, folder, authority)
                pairs[name] = await stack.enter_async_context(two_ways(store, clock, settings, tls=trusting))
            await pairs[name].hang_up()  # connections that were idle during other tests end
            return pairs[name]

        yield Site(start, store, clock, world, paths)


async def check(pair: Pair, case: Case, form: Form, more: tuple[str, ...] = ()) -> None:
    """Send the form to the endpoint, after a request whose tag it may send."""
    headers, tag = (*case.headers, *more), ""
    if any("{" in line for line in form.headers):
        tag = (await pair.ask(FORMS["gzip"].raw(pair.base + case.target, headers, ""), FORMS["gzip"])).tag
    await pair.repeat(form, case.target, headers, tag)


@pytest.mark.parametrize("name", FORMS)
async def test_each_form_of_a_request_is_answered_the_same_way(site: Site, name: str) -> None:
    at = [*FORMS].index(name)
    pair, cases = await site.pair(), [*site.cases(ARTIST), *site.cases("no token")]
    for number, case in enumerate(cases):
        if number % 4 == at % 4:
            await check(pair, case, FORMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("who", CALLERS)
async def test_each_kind_of_caller_is_answered_the_same_way(site: Site, who: str) -> None:
    pair = await site.pair()
    for case in site.cases(who):
        await check(pair, case, PLAIN)


OTHER_SERVERS: Mapping[str, tuple[str, ...]] = {
    "TLS": (),
    "base path": (),
    "proxy": ("X-Forwarded-For: 198.51.100.9, 127.0.0.1", "X-Forwarded-Proto: https"),
}


@pytest.mark.parametrize(("name", "more"), [("plain", ()), *OTHER_SERVERS.items()])
async def test_a_large_answer_is_sent_the_same_way(site: Site, name: str, more: tuple[str, ...]) -> None:
    pair, case = await site.pair(name), Case("large", KEPT[0], f"/api/v1/albums/{LARGE}", site.headers(ARTIST))
    assert len((await pair.ask(PLAIN.raw(pair.base + case.target, (*case.headers, *more), ""))).answers[0]) > UNCOUNTED
    for form in FORMS.values():
        await check(pair, case, form, more)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_SERVERS)
async def test_servers_with_other_settings_answer_the_same_way(site: Site, name: str) -> None:
    pair = await site.pair(name)
    for number, case in enumerate([*site.cases(ARTIST), *site.cases("no token")]):
        for form in (PLAIN, [*FORMS.values()][number % len(FORMS)]):
            await check(pair, case, form, OTHER_SERVERS[name])


@pytest.mark.slow
@pytest.mark.parametrize("server", ["plain", *OTHER_SERVERS])
@pytest.mark.parametrize("name", FORMS)
async def test_every_form_of_every_caller_is_answered_the_same_way(
    site: Site, server: str, name: str, *, long: bool
) -> None:
    pair, more = await site.pair(server), OTHER_SERVERS.get(server, ())
    callers = CALLERS if server == "plain" else (ARTIST, "no token")
    cases = [case for who in callers for case in site.cases(who)]
    if (server, name) == ("TLS", "under another name"):
        cases = cases[:16]  # over TLS a server waits two seconds for who sends what it refuses
    for case in cases if long else cases[[*FORMS].index(name) % 8 :: 8]:
        await check(pair, case, FORMS[name], more)
