"""The pages of administration show each text, time, link and button that belongs to them, and nothing else."""

import re
from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.admin_world import World, at, fill, wish
from tests.support.office import Office
from tests.support.page_client import page_client
from tests.support.page_outline import outline
from tests.support.shared_server import Shared, on_shared_loop

TOKENS = "Name | State | Ends in | Last used (UTC) | Expires (UTC)"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(shared: Shared) -> AsyncIterator[World]:
    async with page_client(shared.client.root) as browser:
        yield fill(Office(shared, browser, 1))


@on_shared_loop
async def test_requests_are_listed_pending_or_decided(world: World) -> None:
    ids = world.requests

    def entry(number: int, state: str) -> list[str]:
        return [f"[/admin/requests/{ids[number]}] asker{number}@{world.office.domain}", state, *wish(number)]

    def answers(number: int) -> str:
        path = f"/admin/requests/{ids[number]}"
        return f"[{path}/approve] Approve [{path}#deny] Deny …"

    assert await world.lines("/admin") == [
        "Requests for API access",
        "Requests for API access",
        "[/admin?show=decided] Show decided requests",
        *entry(3, "pending"),
        answers(3),
        *entry(0, "pending"),
        answers(0),
    ]
    assert await world.lines("/admin?show=decided") == [
        "Requests for API access",
        "Decided requests",
        "[/admin] Show pending requests",
        *entry(2, "[bad] denied"),
        f"Decided: {at(19)}",
        "Reason: Too vague.",
        *entry(1, "[good] approved"),
        f"Decided: {at(18)}",
    ]


@on_shared_loop
async def test_a_request_shows_its_decision_or_the_forms_to_decide(world: World) -> None:
    decisions = {
        0: ["State: pending", "–", "–"],
        1: ["State: [good] approved", at(18), "–"],
        2: ["State: [bad] denied", at(19), "Too vague."],
    }
    for number, (state, decided, reason) in decisions.items():
        path = f"/admin/requests/{world.requests[number]}"
        forms = [
            f"[{path}/approve] Approve",
            "Deny",
            f"[{path}/deny]",
            "Reason",
            "The person who asked reads it. They can ask again. Deny the request",
        ]
        assert await world.lines(path) == [
            f"Request by asker{number}@{world.office.domain}",
            f"Request by asker{number}@{world.office.domain}",
            state,
            *wish(number),
            f"Decided: {decided}",
            f"Reason: {reason}",
            *(forms if number == 0 else []),
        ]


@on_shared_loop
async def test_accounts_are_listed_with_their_state(world: World) -> None:
    domain, path = world.office.domain, "/admin/accounts"
    created, *shown = (await world.lines(f"{path}?q=@{domain}"))[-4:]
    assert created.endswith(f"] asker1@{domain} | [good] API access | asker1 | 2026-03-01 12:18")
    assert shown == [
        f"[{path}/{world.cleo}] cleo@{domain} | [bad] suspended | Cleopatra | 2026-03-01 12:00",
        f"{world.owner} | [good] API access | Ben B. | 2026-03-01 12:00",
        f"[{path}/{world.office.admin}] ann@{domain} | no API access administrator | ann | 2026-03-01 12:00",
    ]
    assert (await world.lines(f"{path}?q=cleo"))[:-1] == [
        "Accounts",
        "Accounts",
        "Create an account …",
        f"[{path}]",
        "E-mail",
        "[]",
        "Display name",
        "[] By default, the part of the e-mail before the @. Create the account",
        "You get a link with which the account's owner sets a password.",
        f"[{path}]",
        "Search by e-mail or name",
        "[cleo] Search",
        "E-mail | State | Name | Created (UTC)",
    ]


def withdrawal(path: str) -> list[str]:
    """Return the lines of the form that withdraws plays, on the page of an account."""
    return [
        "Withdraw reported plays …",
        "The next page shows which plays these are, and asks.",
        f"[{path}/withdraw-plays]",
        "Reported since",
        "[] A time (2026-01-31T12:00:00Z) or an age (15m, 7d). Empty: all plays that the account reported.",
        "Id of the track",
        "[] Empty: of all tracks. Show the plays",
    ]


@on_shared_loop
async def test_an_account_has_its_tokens_and_last_events(world: World) -> None:
    path, domain = f"/admin/accounts/{world.ben}", world.office.domain
    laptop, phone, radio, lost = world.tokens
    assert await world.lines(path) == [
        f"ben@{domain}",
        f"ben@{domain}",
        "State: [good] API access",
        "Name: Ben B.",
        "Password: set",
        "Reports plays: of all listeners",
        "Reported: 0 plays in the last 30 days",
        f"Created: {at(0)}",
        f"[{path}/password-link] Make a password link",
        f"[{path}/revoke-access] Revoke API access [/admin/activity?account=ben%40{domain}] Activity",
        "Suspend the account …",
        "The account is signed out, and its tokens stop working at once. You can reinstate it.",
        f"[{path}/suspend]",
        "Reason",
        "Suspend",
        *withdrawal(path),
        "Tokens",
        TOKENS,
        *world.token_rows(),
        "Last security events",
        "Time (UTC) | Event | By | Reason",
        f"2026-03-01 12:12 | account.reinstated | admin ann@{domain} |",
        f"2026-03-01 12:11 | account.suspended | admin ann@{domain} | scraping",
        f"2026-03-01 12:10 | token.revoked token {lost} | abuse | hurried",
        f"2026-03-01 12:06 | token.revoked token {phone} | abuse | probed",
        f"2026-03-01 12:05 | token.created token {lost} | cli |",
        f"2026-03-01 12:04 | token.created token {radio} | cli |",
        f"2026-03-01 12:03 | token.created token {phone} | cli |",
        f"2026-03-01 12:02 | token.created token {laptop} | cli |",
        "2026-03-01 12:01 | access.granted | cli | with plays of other listeners",
        "2026-03-01 12:00 | account.created | cli |",
    ]


@on_shared_loop
async def test_a_suspended_account_can_be_reinstated(world: World) -> None:
    path, domain = f"/admin/accounts/{world.cleo}", world.office.domain
    assert await world.lines(path) == [
        f"cleo@{domain}",
        f"cleo@{domain}",
        "State: [bad] suspended",
        f"Suspended: {at(7)}: abuse: three tokens",
        "Name: Cleopatra",
        "Password: not set",
        "Reports plays: of their own only",
        "Reported: 0 plays in the last 30 days",
        f"Created: {at(0)}",
        f"[{path}/reinstate] Reinstate the account",
        f"[{path}/grant-access] Grant API access [/admin/activity?account=cleo%40{domain}] Activity",
        *withdrawal(path),
        "Tokens",
        "The account has no tokens. Its owner creates them in the settings, under Developers.",
        "Last security events",
        "Time (UTC) | Event | By | Reason",
        "2026-03-01 12:07 | account.suspended | abuse | three tokens",
        "2026-03-01 12:00 | account.created | cli |",
    ]


@on_shared_loop
async def test_tokens_of_all_accounts_are_listed_with_their_state(world: World) -> None:
    assert await world.lines("/admin/tokens") == [
        "Tokens",
        "Tokens",
        "[/admin/tokens]",
        "Search by name or e-mail",
        "[] Search",
        TOKENS.replace("Name", "Name | Account"),
        *world.token_rows(f"{world.owner} | "),
    ]


@on_shared_loop
async def test_a_token_can_be_revoked_or_reinstated(world: World) -> None:
    laptop, phone, *_ = world.tokens

    def links(token_id: int) -> str:
        path = f"/admin/abuse/{token_id}"
        return f"[{path}] Explain by the abuse rules [/admin/activity?token={token_id}] Activity"

    assert await world.lines(f"/admin/tokens/{laptop}") == [
        "Token laptop",
        "Token laptop",
        "State: [good] valid",
        f"Account: {world.owner}",
        f"Ends in: {world.ends[0]}",
        "Scope: read",
        f"Created: {at(2)}",
        f"Last used: {at(8)}",
        "Expires: 30 May 2026, 12:02 UTC",
        links(laptop),
        "Revoke",
        "The next request with the token is refused. You can reinstate it.",
        f"[/admin/tokens/{laptop}/revoke]",
        "Reason",
        "The token's owner can read it. Revoke the token",
    ]
    assert await world.lines(f"/admin/tokens/{phone}") == [
        "Token phone",
        "Token phone",
        "State: [bad] revoked",
        f"Revoked: {at(6)}: abuse: probed",
        f"Account: {world.owner}",
        f"Ends in: {world.ends[1]}",
        "Scope: read-write",
        f"Created: {at(3)}",
        "Last used: –",
        "Expires: 30 May 2026, 12:03 UTC",
        f"[/admin/tokens/{phone}/reinstate] Reinstate the token {links(phone)}",
    ]


@on_shared_loop
async def test_actions_of_the_abuse_monitor_can_be_undone_while_in_force(world: World) -> None:
    phone, lost, cleo = world.tokens[1], world.tokens[3], f"/admin/accounts/{world.cleo}"
    assert (await world.lines("/admin/abuse"))[3:] == [
        "Account suspended: a deleted account",
        "undone",
        f"When: {at(13)}",
        "Why: 4",
        f"Token revoked: {world.owner}",
        "undone",
        f"When: {at(10)}",
        f"Token: {lost}, deleted",
        "Why: hurried",
        f"Account suspended: [{cleo}] cleo@{world.office.domain}",
        "[bad] in force",
        f"When: {at(7)}",
        "Why: three tokens",
        f"[{cleo}/reinstate] Undo: reinstate the account",
        f"Token revoked: {world.owner}",
        "[bad] in force",
        f"When: {at(6)}",
        f"Token: [/admin/tokens/{phone}] phone ({world.ends[1]})",
        "Why: probed",
        f"[/admin/tokens/{phone}/reinstate] Undo: reinstate the token [/admin/abuse/{phone}] Explain",
    ]


@on_shared_loop
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
        assert [text for *_, text in links] == ["Requests", "Accounts", "Tokens", "Abuse", "Activity", "Health"]
        assert [f"{kind} {text}" for _, kind, text in links if kind] == [current]


@on_shared_loop
async def test_a_link_to_set_a_password_is_shown_with_its_end(world: World) -> None:
    path = f"/admin/accounts/{world.ben}"
    title, heading, *shown = outline((await world.office.act(f"{path}/password-link", 200)).body)
    assert (title, heading) == ("Password link", "A link to set the password")
    link = shown.pop(1)
    assert link.startswith(f"{world.office.shared.client.root}/password/")
    assert shown == [
        f"Give this link to {world.owner}. No e-mail is sent. It sets the password once and is shown only now.",
        "Copy the link",
        "Valid until 2 March 2026, 12:19 UTC, until the next link, or until a password is set.",
    ]
    created = outline((await world.office.act("/admin/accounts", 200, email=f"new@{world.office.domain}")).body)
    assert created[:2] == ["Password link", "The account was created"]
