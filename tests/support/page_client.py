"""A browser without JavaScript: it keeps cookies, and fills in forms with the token that it was shown."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from musicsvc.clock import SECOND
from musicsvc.server import browsers
from musicsvc.store.accounts import users
from musicsvc.store.security import sessions
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support.serving import Answer, connector
from tests.support.shared_server import Shared

TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')
HTML = "text/html,application/xhtml+xml,*/*;q=0.8"


class PageClient:
    def __init__(self, http: aiohttp.ClientSession, root: str) -> None:
        self._http = http
        self.root = root
        self.cookie = browsers.COOKIE  # the name of the cookie with the session
        self.cookies: dict[str, str] = {}
        self.headers = {"Accept": HTML, "User-Agent": "Tests/1.0", "Origin": str(URL(root).origin())}

    def move(self, last: int) -> None:
        """Use another address from now on, 192.0.2.`last`, over HTTPS by way of a proxy on this machine."""
        origin = self.headers["Origin"].replace("http://", "https://")
        self.headers |= {"X-Forwarded-For": f"192.0.2.{last}", "X-Forwarded-Proto": "https", "Origin": origin}

    async def get(self, path: str, **headers: str) -> Answer:
        return await self._send("GET", path, None, headers)

    async def head(self, path: str, **headers: str) -> Answer:
        return await self._send("HEAD", path, None, headers)

    async def post(self, path: str, fields: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        """Send a form, with the token of a form that this browser was shown unless `fields` has another one.

        A form with a `file`, given as its name and content, is sent as multipart/form-data.
        """
        sent = dict(fields or {})
        file = sent.pop("file", None)
        if "form_token" not in sent:
            sent["form_token"] = await self.form_token()
        if file is not None:
            form = aiohttp.FormData(sent, quote_fields=False)
            form.add_field("file", BytesIO(file[1]), filename=file[0], content_type="application/octet-stream")
            payload = form()
            return await self._send("POST", path, payload, {**payload.headers, **headers})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self._send("POST", path, BytesIO(urlencode(sent).encode()), kind | headers)

    async def post_body(self, path: str, body: bytes, kind: str) -> Answer:
        """Send a form as these bytes."""
        return await self._send("POST", path, BytesIO(body), {"Content-Type": kind})

    async def form_token(self) -> str:
        """Return the token of a form that every browser may see."""
        shown = await self.get("/sign-in")
        if shown.status == 303:  # signed in: each page has the form to sign out
            shown = await self.get("/")
        return str(TOKEN.findall(text(shown))[0])

    async def sign_in(self, email: str, password: str = PASSWORD, path: str = "/sign-in", **headers: str) -> Answer:
        return await self.post(path, {"email": email, "password": password}, **headers)

    async def _send(
        self, method: str, path: str, data: BytesIO | aiohttp.Payload | None, more: Mapping[str, str]
    ) -> Answer:
        headers = {**self.headers, **more}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {name: value for name, value in headers.items() if value}
        url = f"{self.root}{path}"
        async with self._http.request(method, url, data=data, headers=headers, allow_redirects=False) as answer:
            for line in answer.headers.getall("Set-Cookie", ()):
                name, _, rest = line.partition("=")
                self.cookies[name] = rest.partition(";")[0]
                if "Max-Age=0" in line:
                    del self.cookies[name]
            return Answer(answer.status, answer.headers, await answer.read())


@asynccontextmanager
async def page_client(root: str) -> AsyncIterator[PageClient]:
    """Open a browser without cookies."""
    async with aiohttp.ClientSession(connector=connector(), cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield PageClient(http, root)


def text(answer: Answer) -> str:
    """Return the page with its character references replaced."""
    return unescape(answer.body.decode())


def add_account(shared: Shared, email: str, *, password_hash: str = PASSWORD_HASH, **options: Any) -> int:
    """Create an account with PASSWORD and return its id."""
    now = shared.clock.now()
    user = shared.store.write(lambda: users.create(email, password_hash=password_hash, now=now, **options)).result()
    return int(user.id)


def add_session(shared: Shared, user_id: int, *, ago: int = 0) -> str:
    """Create a session of the account, a number of seconds ago, and return its id."""
    now = shared.clock.now() - ago * SECOND
    unit = lambda: sessions.create(users.get(user_id), address="127.0.0.1", agent="Tests/1.0", now=now)  # noqa: E731 - short
    return shared.store.write(unit).result()
