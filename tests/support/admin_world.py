"""Accounts, tokens and requests in all states, for the pages of administration."""

from collections.abc import Callable
from typing import NamedTuple

from musicsvc.clock import MINUTE
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.models import Token, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from tests.support.office import Office
from tests.support.page_outline import outline


class World(NamedTuple):
    """The ids of accounts, tokens and requests, and the last four characters of the tokens."""

    office: Office
    ben: int
    cleo: int
    tokens: list[int]
    ends: list[str]
    requests: list[int]

    async def lines(self, path: str) -> list[str]:
        answer = await self.office.browser.get(path)
        assert answer.status == 200, path
        return outline(answer.body)

    @property
    def owner(self) -> str:
        return f"[/admin/accounts/{self.ben}] ben@{self.office.domain}"

    def token_rows(self, account: str = "") -> list[str]:
        """Return the rows of a table of tokens. `account`: the cell before the state."""
        rows = [
            (2, "old radio", "expired", "– | 1 Mar 2026, 12:09 UTC"),
            (1, "phone", "[bad] revoked", "– | 30 May 2026, 12:03 UTC"),
            (0, "laptop", "[good] valid", "1 Mar 2026, 12:08 UTC | 30 May 2026, 12:02 UTC"),
        ]
        return [
            f"[/admin/tokens/{self.tokens[at]}] {name} | {account}{state} | {self.ends[at]} | {times}"
            for at, name, state, times in rows
        ]


def fill(office: Office) -> World:
    """Each act happens in a minute of its own, the first at 12:01."""
    clock, admin = office.shared.clock, Administrator(office.admin)

    def act(unit: Callable[[int], object]) -> None:
        clock.advance(MINUTE)
        office.do(lambda: unit(clock.now()))

    ben, cleo = office.account(display_name="Ben B."), office.account("cleo", display_name="Cleopatra")
    act(lambda now: api_access.grant(users.get(ben), plays=True, now=now))
    made = []
    for name in ("laptop", "phone", "old radio", "lost"):
        clock.advance(MINUTE)
        made.append(office.token(ben, name))
    laptop, phone, radio, lost = (token_id for token_id, _ in made)
    act(lambda now: tokens.revoke(phone, "abuse: probed", now=now, actor="abuse"))
    act(lambda now: users.suspend(users.get(cleo), reason="abuse: three tokens", now=now, actor="abuse"))
    act(lambda now: Token.update(last_used_at=now, scope="read").where(Token.id == laptop).execute())
    act(lambda now: Token.update(expires_at=now).where(Token.id == radio).execute())
    act(lambda now: tokens.revoke(lost, "abuse: hurried", now=now, actor="abuse"))
    office.do(lambda: Token.delete().where(Token.id == lost).execute())
    act(lambda now: users.suspend(users.get(ben), reason="scraping", now=now, actor=admin))
    act(lambda now: users.reinstate(users.get(ben), now=now, actor=admin))
    act(lambda now: security_events.add("account.suspended", now=now, actor="abuse", account_id=99, reason="abuse: 4"))
    office.do(lambda: User.update(password_hash=None).where(User.id == cleo).execute())
    asked = []
    for number in range(4):
        clock.advance(MINUTE)
        asked.append(office.request(f"asker{number}", f"App {number}", f"{number} a day", f"Firm {number}"))
    act(lambda now: api_access.approve(asked[1], now=now, actor=admin))
    act(lambda now: api_access.deny(asked[2], "Too vague.", now=now, actor=admin))
    return World(office, ben, cleo, [laptop, phone, radio, lost], [value[-4:] for _, value in made], asked)


def at(minute: int) -> str:
    return f"1 Mar 2026, 12:{minute:02} UTC"


def wish(number: int) -> list[str]:
    return [
        f"Organization: Firm {number}",
        f"Use case: App {number}",
        f"Expected volume: {number} a day",
        f"Requested: {at(14 + number)}",
    ]
