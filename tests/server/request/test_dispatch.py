"""The whole head of each kind of answer, and the whole record of its request, as dispatched.txt has them."""

import asyncio
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp.test_utils import TestClient

from musicsvc.clock import DAY, MovableClock
from musicsvc.config import Limits, Server, Settings
from musicsvc.server.browsers import Browser
from musicsvc.server.call import Call
from musicsvc.server.pages import html
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions
from tests.conftest import NOW
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support import databases
from tests.support.raw_connection import BODYLESS, PATIENCE, connected, request, settled
from tests.support.serving import ServiceServer, connector, person

HEADS = Path(__file__).with_name("dispatched.txt")
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
PROXIED = ("X-Forwarded-For: 192.0.2.9", "X-Forwarded-Proto: https")
EXPORT = b'{"type": "tracks"}'
TAG = re.compile(r"(?<=\")[0-9a-f]{32}")
LEFT = re.compile(r"(?<=;r=)\d{2,}|(?<=X-RateLimit-Remaining: )\d{2,}")  # after repeated requests
SECRET = re.compile(
    r"(?<=X-Request-Id: )[0-9a-f]{24}|(?<=request_id=)[0-9a-f]{24}"
    r"|(?<=__Host-musicsvc=)[\w-]{43}|(?<=__Host-musicsvc_notice=)[\w=-]{9,}"
)
NOTICE = "__Host-musicsvc_notice=IkRvbmUi"
RECORDED = (
    *("request_id", "method", "address", "route", "account_id", "token_id", "session_id", "resource", "limits_apply"),
    *("token_holder", "status", "retry_after", "refused_by"),
)


class StoppedClock(MovableClock):
    """A clock that stands still in each respect."""

    def monotonic(self) -> float:
        return 1000.0


class Sender:
    """Sends requests to a server, and writes down the answers and what the server's observers get."""

    def __init__(self, server: ServiceServer, store: Store, clock: MovableClock) -> None:
        assert server.service is not None
        self._dispatcher: Any = server.service.dispatcher
        self._root = str(server.make_url(""))
        self._calls: list[Call] = []
        self._dispatcher._observers = [*self._dispatcher._observers, self._note]
        self._store, self._clock = store, clock
        self.written: list[str] = []

    def _note(self, call: Call) -> None:
        self._calls.append(call)

    def token(self, email: str, scope: tokens.Scope = "read-write", after: int = 0) -> str:
        """Create an account and return the header with its token. `after`: how old the token is."""
        self._clock.advance(-after)
        token = person(self._store, self._clock, email, scope=scope)[1]
        self._clock.advance(after)
        return f"Authorization: Bearer {token}"

    def session(self, email: str) -> str:
        """Create an account with a password and sign it in. Return the session's id."""

        def make() -> str:
            user = users.create(email, password_hash=PASSWORD_HASH, now=NOW)
            return sessions.create(user, address="192.0.2.9", agent="Tests", now=NOW)

        return self._store.write(make).result()

    async def send(self, name: str, raw: bytes, *, until_immediate: bool = False) -> None:
        """Send a request. `until_immediate`: again and again until it is answered from memory."""
        answered = self._dispatcher.first_steps.answered
        async with connected(self._root) as wire, asyncio.timeout(PATIENCE):
            while True:
                self._calls.clear()
                await wire.send(raw)
                answer = await wire.answer(head=raw.startswith(b"HEAD"))
                await settled(lambda: self._calls)
                if not until_immediate or self._dispatcher.first_steps.answered > answered:
                    break
        (call,) = self._calls
        assert call.size == len(answer.body)
        assert call.reservation is None or call.reservation._released
        if call.method != "HEAD" and answer.status not in BODYLESS:
            assert int(answer.headers["Content-Length"]) == len(answer.body)
        lines = [f"{key}: {value}" for key, value in answer.headers.items() if key not in {"Date", "Content-Length"}]
        self.written.append(masked("\n".join([f"# {name}", str(answer.status), *lines, record(call), ""])))


def record(call: Call) -> str:
    """Return what the record of a request has, apart from its size and what is not set."""
    assert (call.at, call.began, call.milliseconds) == (NOW, 1000.0, 0.0)
    fields = {name: getattr(call, name) for name in RECORDED} | {"route": call.route and call.route.path}
    fields["counted"] = [hit.limit.name for hit in call.counted]
    return ", ".join(f"{name}={value}" for name, value in fields.items() if value)


def masked(value: str) -> str:
    return LEFT.sub("<left>", TAG.sub("<tag>", SECRET.sub("<secret>", value)))


def visit(session: str | None = None) -> tuple[str, ...]:
    """Return headers of a browser."""
    cookie = () if session is None else (f"Cookie: __Host-musicsvc={session}",)
    return ("Accept: text/html", "Origin: https://music.test", *cookie, *PROXIED)


def form(session: str, **fields: str) -> bytes:
    """Return the body of a form that this browser was shown."""
    token = Browser(secure=True, origin="", address="", agent="", mark="", value=session).form_token()
    return urlencode({"form_token": token, **fields}).encode()


async def send_to_the_api(sender: Sender) -> None:
    ann, ben = sender.token("ann@label.test"), sender.token("ben@label.test", "read")
    cleo = sender.token("cleo@label.test", after=80 * DAY)
    numbers = count(1)

    async def send(name: str, method: str, path: str, *headers: str, body: bytes = b"", **more: bool) -> None:
        target = path if path.startswith("/") else f"/api/v1/{path}"
        await sender.send(name, request(method, target, f"X-Request-Id: {next(numbers)}", *headers, body=body), **more)

    await send("a list", "GET", "artists", ann)
    await send("the same from memory", "GET", "artists", ann, until_immediate=True)
    await send("the same through a proxy", "GET", "artists", ann, *PROXIED)
    await send("the same from memory through a proxy", "GET", "artists", ann, *PROXIED, until_immediate=True)
    await send("its head", "HEAD", "artists", ann)
    await send("a list that the client has", "GET", "artists", ann, "If-None-Match: *")
    await send("a list that is compressed", "GET", "genres?perPage=100", ann, "Accept-Encoding: gzip")
    await send("a list without a token", "GET", "artists")
    await send("a list with a token that expires soon", "GET", "artists", cleo)
    await send("a new artist", "POST", "artists", ann, JSON, body=b'{"name": "Amy Beach"}')
    await send("an artist", "GET", "artists/1", ann)
    await send("a new playlist", "POST", "playlists", ann, JSON, body=b'{"name": "Rags"}')
    await send("a change", "PUT", "playlists/1", ann, JSON, body=b'{"name": "Two-steps"}')
    await send("a deletion", "DELETE", "playlists/1", ann)
    await send("figures", "GET", f"{INSIGHTS}/artists/1", ann)
    await send("an export as CSV", "POST", f"{INSIGHTS}/export/csv", ann, JSON, body=EXPORT)
    await send("an export as JSON", "POST", f"{INSIGHTS}/export/json", ann, JSON, body=EXPORT)
    await send("an export as a workbook", "POST", f"{INSIGHTS}/export/xlsx", ann, JSON, body=EXPORT)
    await send("an export beyond the limit", "POST", f"{INSIGHTS}/export/csv", ann, JSON, body=EXPORT)
    await send("a picture", "GET", "/cover-art/templates/1.png")
    await send("a picture that is kept", "GET", "/cover-art/templates/1.png", "If-None-Match: *")
    await send("the health", "GET", "/healthz")
    await send("the metrics", "GET", "/metrics")
    await send("the document", "GET", "openapi.json", "Accept-Encoding: gzip")
    await send("the page of the document", "GET", "/docs")
    await send("no token", "GET", "users/me")
    await send("a wrong token", "GET", "users/me", "Authorization: Bearer wrong")
    await send("a wrong token at figures", "GET", f"{INSIGHTS}/artists/1", "Authorization: Bearer wrong")
    await send("a token for reading", "POST", "artists", ben, JSON, body=b'{"name": "Clara"}')
    await send("plain HTTP", "GET", "artists", ann, "X-Forwarded-Proto: http")
    await send("an unknown path", "GET", "nothing", ann)
    await send("an unknown artist", "GET", "artists/999", ann)
    await send("an unknown method", "DELETE", "artists", ann)
    await send("a wrong parameter", "GET", "artists?page=0", ann)
    await send("a wrong field", "POST", "artists", ann, JSON, body=b"{}")
    await send("a body that is not JSON", "POST", "artists", ann, JSON, body=b"{")
    await send("a body of another kind", "POST", "artists", ann, FORM, body=b"a=b")
    await send("a body that is too large", "POST", "artists", ann, JSON, "Content-Length: 2000000")


async def send_to_pages(sender: Sender) -> None:
    session = sender.session("dora@label.test")
    numbers = count(101)

    async def send(name: str, method: str, path: str, *headers: str, body: bytes = b"") -> None:
        await sender.send(name, request(method, path, f"X-Request-Id: {next(numbers)}", *headers, body=body))

    signing_in = form(session, email="dora@label.test", password=PASSWORD)
    await send("a page", "GET", "/sign-in", *visit())
    await send("a page that is compressed", "GET", "/sign-in", *visit(), "Accept-Encoding: gzip")
    await send("a page for those who are signed in", "GET", "/settings", *visit())
    await send("a page of somebody", "GET", "/settings", *visit(session))
    await send("a page of administrators", "GET", "/admin", *visit(session))
    await send("an unknown page", "GET", "/nothing", *visit())
    await send("an unknown page for htmx", "GET", "/nothing", *visit(), "HX-Request: true")
    await send("a form of another site", "POST", "/sign-in", "Accept: text/html", FORM, body=b"a=b")
    await send("a wrong form", "POST", "/settings/name", *visit(session), FORM, body=form(session, display_name=""))
    await send("a right form", "POST", "/settings/name", *visit(session), FORM, body=form(session, display_name="Dora"))
    await send("a notice", "GET", "/settings", *visit(f"{session}; {NOTICE}"))
    await send("signing in", "POST", "/sign-in", *visit(session), FORM, body=signing_in)
    await send("signing in by htmx", "POST", "/sign-in", *visit(session), FORM, "HX-Request: true", body=signing_in)
    await send("signing out", "POST", "/sign-out", *visit(session), FORM, body=form(session))
    await send("a style sheet", "GET", html.static_path("site.css"))
    await send("a wrong registration", "POST", "/register", *visit(session), FORM, body=form(session, email="x"))


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # PostgreSQL begins to cache after a while
async def test_each_kind_of_answer(new_database: Callable[..., str], template: databases.Template) -> None:
    clock = StoppedClock(NOW, speed=0)
    limits = Limits.model_validate({"local": True, "exports": "3/hour"})
    server = Server(public_url="https://music.test", local_http=True)
    with opening.connect(new_database()) as store:
        template.make_log(store.url)
        serving = ServiceServer(store, clock, Settings(limits=limits, server=server))
        async with TestClient(serving, connector=connector()):
            sender = Sender(serving, store, clock)
            await send_to_the_api(sender)
            await send_to_pages(sender)
            await sender.send("bytes that are not HTTP", b"GARBAGE\r\n\r\n")
            await sender.send("HTTP/1.0", b"GET /healthz HTTP/1.0\r\nX-Request-Id: 201\r\n\r\n")
    assert "\n".join(sender.written) == HEADS.read_text("utf-8")
