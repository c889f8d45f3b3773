"""An account that is signed in, for tests of the pages of its settings."""

from collections.abc import Callable
from typing import Any, NamedTuple

from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.models import Token, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Event
from tests.support.html_page import HtmlPage
from tests.support.listening_world import Catalog
from tests.support.page_client import PageClient
from tests.support.shared_server import Shared


class Person(NamedTuple):
    """A signed-in account."""

    shared: Shared
    browser: PageClient
    id: int
    email: str

    def do(self, unit: Callable[[User], Any]) -> Any:
        """Return the result of a write transaction with the account."""
        return self.shared.store.write(lambda: unit(users.get(self.id))).result()

    def token(self, name: str = "laptop", **options: Any) -> tuple[Token, str]:
        now = self.shared.clock.now()
        made: tuple[Token, str] = self.do(lambda user: tokens.create(user, name, now=now, **options))
        return made

    def events(self) -> list[Event]:
        found = security_events.Filter(account_id=self.id)
        return self.shared.store.read(lambda: security_events.find(found, limit=99)).result()

    async def status(self, value: str) -> int:
        """Return the status of an API call with this token."""
        return (await self.shared.client.holding(value).get("users/me")).status


class World:
    """A server, a browser signed in as the manager of a catalog with plays, and that catalog."""

    def __init__(self, shared: Shared, browser: PageClient, made: Catalog) -> None:
        self.shared = shared
        self.browser = browser
        self.made = made

    async def api(self, path: str) -> Any:
        answer = await self.shared.client.holding(self.made.token).get(f"{INSIGHTS}/{path}")
        assert answer.status == 200
        return answer.json["data"]

    async def page(self, path: str) -> HtmlPage:
        answer = await self.browser.get(path)
        assert answer.status == 200, answer.body
        return HtmlPage(answer.body)
