"""An administrator in a browser, for the tests of the pages of administration."""

from collections.abc import Callable
from typing import Any

from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.security import security_events
from tests.support.page_client import PageClient, add_account, add_session, text
from tests.support.serving import Answer
from tests.support.shared_server import Shared

WISH = ("A player", "100 a day", "Engines Ltd")


class Office:
    """An administrator in a browser, and the store."""

    def __init__(self, shared: Shared, browser: PageClient, number: int) -> None:
        self.shared = shared
        self.browser = browser
        self.domain = f"admin{number}.test"
        self.admin = add_account(shared, f"ann@{self.domain}", admin=True)
        browser.cookies = {"musicsvc": add_session(shared, self.admin)}

    def do(self, unit: Callable[[], Any]) -> Any:
        return self.shared.store.write(unit).result()

    def account(self, name: str = "ben", **options: Any) -> int:
        return add_account(self.shared, f"{name}@{self.domain}", **options)

    def request(self, name: str = "cleo", *texts: str) -> int:
        now = self.shared.clock.now()
        asked = self.do(lambda: api_access.request(f"{name}@{self.domain}", *(texts or WISH), now=now))
        return int(asked.id)

    def token(self, user_id: int, name: str = "laptop") -> tuple[int, str]:
        now = self.shared.clock.now()
        token, value = self.do(lambda: tokens.create(users.get(user_id), name, now=now))
        return token.id, value

    async def page(self, path: str) -> str:
        answer = await self.browser.get(path)
        assert answer.status == 200, path
        return text(answer)

    async def act(self, path: str, status: int = 303, **fields: str) -> Answer:
        answer = await self.browser.post(path, fields)
        assert answer.status == status, text(answer)
        return answer

    def events(self) -> list[tuple[str, int | None, int | None, str | None]]:
        """Return kind, account, token and reason of the events that the administrator caused, and check that."""
        found = self.do(lambda: security_events.find(limit=500))
        return [
            (event.kind, event.account_id, event.token_id, event.reason)
            for event in found
            if (event.actor, event.actor_id) == ("admin", self.admin)
        ]
