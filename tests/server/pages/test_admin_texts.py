"""The pages of administration show what belongs to them in its order, and the links and buttons that belong to it."""

import re
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import pytest_asyncio

from musicsvc.clock import MINUTE
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.models import Token, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from tests.support.office import Office
from tests.support.page_client import page_client
from tests.support.page_outline import outline
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop


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
        calls = " | 0 | 0 | 0" if account else ""
        return [
            f"[/admin/tokens/{self.tokens[at]}] {name} | {account}{state} | {self.ends[at]} | {times}{calls}"
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(shared: Shared) -> AsyncIterator[World]:
    async with page_client(shared.client.root) as browser:
        yield fill(Office(shared, browser, 1))


async def shows(world: World, path: str, facts: list[str], *targets: str) -> None:
    """Assert that the page has these lines in this order, among others, and leads to these paths below it only."""
    lines = await world.lines(path)
    rest = iter(lines)
    assert [fact for fact in facts if fact not in rest] == [], lines
    led = re.findall(r"\[(/admin[^\]?]*)", "\n".join(lines))
    assert [target for target in led if target != path] == list(targets)


async def test_requests_are_listed_pending_or_decided_and_show_the_forms_to_decide(world: World) -> None:
    paths = [f"/admin/requests/{each}" for each in world.requests]

    def entry(number: int, state: str) -> list[str]:
        return [f"[{paths[number]}] asker{number}@{world.office.domain}", state, *wish(number)]

    def links(number: int) -> list[str]:
        path = paths[number]
        return [path, f"{path}/approve", f"{path}#deny"]

    await shows(world, "/admin", [*entry(3, "pending"), *entry(0, "pending")], *links(3), *links(0))
    denied = [*entry(2, "[bad] denied"), f"Decided: {at(19)}", "Reason: Too vague."]
    approved = [*entry(1, "[good] approved"), f"Decided: {at(18)}"]
    await shows(world, "/admin?show=decided", [*denied, *approved], "/admin", paths[2], paths[1])
    for number, state, decided, reason in (
        (0, "pending", "–", "–"),
        (1, "[good] approved", at(18), "–"),
        (2, "[bad] denied", at(19), "Too vague."),
    ):
        path, forms = paths[number], ("/approve", "/deny") if number == 0 else ()
        facts = [f"State: {state}", *wish(number), f"Decided: {decided}", f"Reason: {reason}"]
        await shows(world, path, facts, *(f"{path}{form}" for form in forms))


async def test_accounts_are_listed_with_their_state(world: World) -> None:
    domain, path = world.office.domain, "/admin/accounts"
    created, *shown = (await world.lines(f"{path}?q=@{domain}"))[-4:]
    assert created.endswith(f"] asker1@{domain} | [good] API access | asker1 | 1 Mar 2026, 12:18 UTC")
    assert shown == [
        f"[{path}/{world.cleo}] cleo@{domain} | [bad] suspended | Cleopatra | 1 Mar 2026, 12:00 UTC",
        f"{world.owner} | [good] API access | Ben B. | 1 Mar 2026, 12:00 UTC",
        f"[{path}/{world.office.admin}] ann@{domain} | no API access administrator | ann | 1 Mar 2026, 12:00 UTC",
    ]


async def test_an_account_has_its_tokens_and_last_events(world: World) -> None:
    path, domain = f"/admin/accounts/{world.ben}", world.office.domain
    laptop, phone, radio, lost = world.tokens
    facts = [
        "State: [good] API access",
        "Name: Ben B.",
        "Password: set",
        "Reports plays: of all listeners",
        "Reported: 0 plays in the last 30 days, without imports",
        f"Created: {at(0)}",
        *world.token_rows(),
        f"1 Mar 2026, 12:12 UTC | account.reinstated | admin ann@{domain} |",
        f"1 Mar 2026, 12:11 UTC | account.suspended | admin ann@{domain} | scraping",
        f"1 Mar 2026, 12:10 UTC | token.revoked token {lost} | abuse | hurried",
        f"1 Mar 2026, 12:06 UTC | token.revoked token {phone} | abuse | probed",
        *(
            f"1 Mar 2026, 12:{minute:02} UTC | token.created token {each} | cli |"
            for minute, each in ((5, lost), (4, radio), (3, phone), (2, laptop))
        ),
        "1 Mar 2026, 12:01 UTC | access.granted | cli | with plays of other listeners",
        "1 Mar 2026, 12:00 UTC | account.created | cli |",
    ]
    acts = [f"{path}/{act}" for act in ("password-link", "revoke-access", "make-admin")]
    more = [f"{path}/{act}" for act in ("edit", "suspend", "withdraw-plays", "delete")]
    tokens = [f"/admin/tokens/{each}" for each in (radio, phone, laptop)]
    await shows(world, path, facts, *acts, "/admin/activity", *more, *tokens)


async def test_a_suspended_account_can_be_reinstated(world: World) -> None:
    path = f"/admin/accounts/{world.cleo}"
    facts = [
        "State: [bad] suspended",
        f"Suspended: {at(7)}: abuse: three tokens",
        "Name: Cleopatra",
        "Password: not set",
        "Reports plays: of their own only",
        "Artists: manages none",
        "The account has no tokens. Its owner creates them in the settings, under Developers.",
        "1 Mar 2026, 12:07 UTC | account.suspended | abuse | three tokens",
        "1 Mar 2026, 12:00 UTC | account.created | cli |",
    ]
    acts = [f"{path}/{act}" for act in ("reinstate", "grant-access", "grant-plays", "make-admin")]
    more = [f"{path}/{act}" for act in ("edit", "withdraw-plays", "delete")]
    await shows(world, path, facts, *acts, "/admin/activity", *more)


async def test_tokens_are_listed_with_their_state_and_can_be_revoked_or_reinstated(world: World) -> None:
    laptop, phone, radio, _ = (f"/admin/tokens/{each}" for each in world.tokens)
    account = f"/admin/accounts/{world.ben}"
    listed = [each for token in (radio, phone, laptop) for each in (token, account)]
    await shows(world, "/admin/tokens", world.token_rows(f"{world.owner} | "), *listed)
    valid = [
        "State: [good] valid",
        f"Account: {world.owner}",
        f"Ends in: {world.ends[0]}",
        "Scope: Read only",
        f"Created: {at(2)}",
        f"Last used: {at(8)}",
        "Expires: 30 May 2026, 12:02 UTC",
    ]
    explained = [f"/admin/abuse/{world.tokens[at]}" for at in (0, 1)]
    await shows(world, laptop, valid, account, explained[0], "/admin/activity", f"{laptop}/revoke")
    revoked = ["State: [bad] revoked", f"Revoked: {at(6)}: abuse: probed", "Scope: Read and write", "Last used: –"]
    await shows(world, phone, revoked, account, f"{phone}/reinstate", explained[1], "/admin/activity")


async def test_actions_of_the_abuse_monitor_can_be_undone_while_in_force(world: World) -> None:
    phone, lost, cleo = world.tokens[1], world.tokens[3], f"/admin/accounts/{world.cleo}"
    facts = [
        *("Account suspended: a deleted account", "undone", f"When: {at(13)}", "Why: 4"),
        *(f"Token revoked: {world.owner}", "undone", f"When: {at(10)}", f"Token: {lost}, deleted", "Why: hurried"),
        *(f"Account suspended: [{cleo}] cleo@{world.office.domain}", "[bad] in force", f"When: {at(7)}"),
        *(f"Token revoked: {world.owner}", "[bad] in force", f"When: {at(6)}"),
        *(f"Token: [/admin/tokens/{phone}] phone ({world.ends[1]})", "Why: probed"),
    ]
    owner = f"/admin/accounts/{world.ben}"
    undo = [owner, f"/admin/tokens/{phone}", f"/admin/tokens/{phone}/reinstate", f"/admin/abuse/{phone}"]
    await shows(world, "/admin/abuse", facts, owner, cleo, f"{cleo}/reinstate", *undo)


async def test_the_list_of_pages_marks_the_one_that_is_shown(world: World) -> None:
    shown = {
        "/admin": "page Requests",
        f"/admin/requests/{world.requests[0]}": "true Requests",
        "/admin/accounts": "page Accounts",
        f"/admin/accounts/{world.ben}": "true Accounts",
        "/admin/tokens": "page Tokens",
        f"/admin/abuse/{world.tokens[0]}": "true Abuse",
        "/admin/activity?kind=calls": "page Activity",
        "/admin/health": "page Health",
    }
    for path, current in shown.items():
        page = await world.office.page(path)
        assert re.findall(r'href="/static/([\w.]+)-\w+\.css"', page) == ["pico.min", "site", "admin"]
        tabs = page[page.index('<nav class="tabs"') :]
        links = re.findall(r'<a href="/admin/?(\w*)"(?: aria-current="(\w+)")?>(\w+)</a>', tabs[: tabs.index("</nav>")])
        assert [target or "requests" for target, *_ in links] == [text.lower() for *_, text in links]
        tabs = "Requests Accounts Artists Imports Tokens Abuse Activity Backups Health"
        assert [text for *_, text in links] == tabs.split()
        assert [f"{kind} {text}" for _, kind, text in links if kind] == [current]


async def test_a_link_to_set_a_password_is_shown_with_its_end(world: World) -> None:
    path = f"/admin/accounts/{world.ben}"
    shown = outline((await world.office.act(f"{path}/password-link", 200)).body)
    assert (
        f"Give this link to {world.owner}. No e-mail is sent. It sets the password once and is shown only now." in shown
    )
    assert shown[3].startswith(f"{world.office.shared.client.root}/password/")
    assert "Valid until 2 Mar 2026, 12:19 UTC, until the next link, or until a password is set." in shown
