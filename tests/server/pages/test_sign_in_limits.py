"""Limits on sign-in: wrong passwords, parallel guesses, pages a minute, the same time for unknown accounts."""

from __future__ import annotations

import asyncio
import time

from tests.support.page_client import PASSWORD, PageClient, add_account, add_session, text
from tests.support.shared_server import Shared, on_shared_loop


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
    assert "There were too many wrong passwords. Try again in 5 minutes." in text(refused)
    assert 'value="GUESSED@way.test"' in text(refused)
    assert (await browser.sign_in("other@way.test")).status == 303
    browser.move(3)
    assert (await browser.sign_in("guessed@way.test")).status == 303


@on_shared_loop
async def test_right_passwords_are_not_counted(limited: Shared, browser: PageClient) -> None:
    add_account(limited, "often@way.test")
    browser.move(4)
    assert [(await browser.sign_in("often@way.test")).status for _ in range(12)] == [303] * 12


@on_shared_loop
async def test_a_session_has_300_pages_a_minute(limited: Shared, browser: PageClient) -> None:
    browser.cookies = {"musicsvc": add_session(limited, add_account(limited, "fast@way.test"))}
    statuses = [(await browser.get("/")).status for _ in range(301)]
    assert statuses == [200] * 300 + [429]
    refused = await browser.get("/")
    assert "The limit of 300 pages a minute for this session is spent." in text(refused)
    assert refused.headers["RateLimit-Policy"] == '"session";q=300;w=60'
    browser.cookies = {}
    assert (await browser.get("/")).status == 200


@on_shared_loop
async def test_an_unknown_account_costs_a_hash_too(limited: Shared, browser: PageClient) -> None:
    """Compare CPU time, which is mostly that of the hash, because wall time depends on the machine."""
    add_account(limited, "timed@way.test")
    browser.move(8)
    await browser.form_token()
    costs: dict[str, list[float]] = {"timed": [], "nobody": []}
    for _ in range(4):
        for name, found in costs.items():
            began = time.process_time()
            assert (await browser.sign_in(f"{name}@way.test", "wrong")).status == 422
            found.append(time.process_time() - began)
    known, unknown = (min(found) for found in costs.values())
    assert 1 / 3 < known / unknown < 3  # 5 without the hash


@on_shared_loop
async def test_parallel_guesses_do_not_pass_the_limit(limited: Shared, browser: PageClient) -> None:
    add_account(limited, "parallel@way.test")
    browser.move(9)
    token = await browser.form_token()
    fields = {"email": "parallel@way.test", "password": "wrong", "form_token": token}
    answers = await asyncio.gather(*(browser.post("/sign-in", fields) for _ in range(30)))
    assert sorted(answer.status for answer in answers) == [422] * 10 + [429] * 20
