"""Limits on sign-in: wrong passwords, parallel guesses, pages a minute, the same time for unknown accounts."""

import asyncio

import pytest

from musicsvc.store.security import sessions
from tests.rights.world import PASSWORD
from tests.support.page_client import PageClient, add_account, add_session, text
from tests.support.serving import Answer
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@on_shared_loop
async def test_after_ten_wrong_passwords_the_address_waits_and_others_do_not(
    limited: Shared, browser: PageClient
) -> None:
    add_account(limited, "guessed@way.test")
    add_account(limited, "other@way.test")
    browser.move(2)
    statuses = [(await browser.sign_in("guessed@way.test", "wrong")).status for _ in range(10)]
    assert statuses == [422] * 10
    refused = await browser.sign_in("GUESSED@way.test", PASSWORD)
    assert refused.status == 429
    assert 200 < int(refused.headers["Retry-After"]) <= 300
    assert refused.headers["RateLimit-Policy"] == '"sign_in_account";q=10;w=300'
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert "There were too many wrong passwords. Try again in 5 minutes." in text(refused)
    assert 'value="GUESSED@way.test"' in text(refused)
    assert (await browser.sign_in("other@way.test")).status == 303
    browser.move(3)
    assert (await browser.sign_in("guessed@way.test")).status == 303


@pytest.mark.slow
@on_shared_loop
async def test_an_account_and_a_network_have_60_sign_ins_an_hour(limited: Shared, browser: PageClient) -> None:
    user_id = add_account(limited, "busy@way.test", api_access=True)
    login = {"email": "busy@way.test", "password": PASSWORD, "token_name": "laptop"}

    async def log_in() -> Answer:
        headers = {name: browser.headers[name] for name in ("X-Forwarded-For", "X-Forwarded-Proto")}
        return await limited.client.holding(None).post("auth/login", login, headers=headers)

    statuses = []
    for number in range(60):
        browser.move(30 + number // 20)
        if number % 10 == 5:  # what fails is no sign-in
            assert (await browser.sign_in("busy@way.test", "wrong")).status == 422
        statuses.append((await browser.sign_in("busy@way.test")).status if number % 3 else (await log_in()).status)
    assert statuses == [200, 303, 303] * 20
    browser.move(33)  # another address has not spent anything
    spent = "The limit of 60 sign-ins an hour for this account or your network is reached. Try again in 60 minutes."
    refused, said = await browser.sign_in("busy@way.test"), await log_in()
    assert (refused.status, said.status, said.json["message"]) == (429, 429, spent)
    assert spent in text(refused)
    assert said.headers["RateLimit-Policy"] == refused.headers["RateLimit-Policy"] == '"sign_in";q=60;w=3600'
    assert said.headers["X-RateLimit-Remaining"] == "0"
    assert (await browser.sign_in("busy@way.test", "wrong")).status == 429  # the answer does not tell which is right
    found = limited.store.read(lambda: sessions.list(user_id, now=limited.clock.now())).result()
    assert len(found) == 1  # each sign-in ended the one before in this browser

    names = [f"other{number}@way.test" for number in range(61)]
    browser.move(34)
    for name in names:
        add_account(limited, name)
        statuses.append((await browser.sign_in(name)).status)
    assert statuses[60:] == [303] * 60 + [429]
    browser.move(35)
    assert (await browser.sign_in(names[-1])).status == 303


@pytest.mark.slow
@on_shared_loop
async def test_an_account_has_300_pages_a_minute_over_all_its_sessions(limited: Shared, browser: PageClient) -> None:
    fast, calm = add_account(limited, "fast@way.test"), add_account(limited, "calm@way.test")
    signed_in = [add_session(limited, fast) for _ in range(3)]
    statuses = []
    for number in range(301):
        browser.cookies = {"musicsvc": signed_in[number % 3]}
        statuses.append((await browser.get("/")).status)
    assert statuses == [200] * 300 + [429]
    refused = await browser.get("/")
    assert "The limit of 300 pages a minute for this account is reached." in text(refused)
    assert refused.headers["RateLimit-Policy"] == '"session";q=300;w=60'
    for cookies in ({}, {"musicsvc": add_session(limited, calm)}):
        browser.cookies = cookies
        assert (await browser.get("/")).status == 200


@on_shared_loop
async def test_downloads_count_for_their_account_and_not_for_others_at_its_address(
    limited: Shared, browser: PageClient
) -> None:
    greedy, calm = add_account(limited, "greedy@way.test"), add_account(limited, "patient@way.test")
    signed_in = [add_session(limited, greedy) for _ in range(2)]

    async def download(cookie: str) -> Answer:
        browser.cookies = {"__Host-musicsvc": cookie}
        return await browser.post("/insights/export/csv", {"type": "artists"})

    browser.move(8)
    statuses = [(await download(signed_in[number % 2])).status for number in range(21)]
    assert statuses == [200] * 20 + [429]
    browser.move(9)  # another address helps the account nothing
    refused = await download(signed_in[0])
    assert "The limit of 20 downloads a minute for this account is reached." in text(refused)
    assert '"downloads";q=20;w=60' in refused.headers["RateLimit-Policy"]
    assert (await download(add_session(limited, calm))).status == 200
    browser.move(8)
    assert (await download(add_session(limited, calm))).status == 200


@on_shared_loop
async def test_parallel_guesses_do_not_pass_the_limit(limited: Shared, browser: PageClient) -> None:
    add_account(limited, "parallel@way.test")
    browser.move(9)
    token = await browser.form_token()
    fields = {"email": "parallel@way.test", "password": "wrong", "form_token": token}
    answers = await asyncio.gather(*(browser.post("/sign-in", fields) for _ in range(30)))
    assert sorted(answer.status for answer in answers) == [422] * 10 + [429] * 20
