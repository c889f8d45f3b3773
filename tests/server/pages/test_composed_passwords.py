"""A password is right wherever it is asked for, however the keyboard composes its characters."""

import pytest

from musicsvc.store.accounts import api_access, password_links, passwords, users
from tests.support.command import run_in_process
from tests.support.page_client import PageClient, page_client, text
from tests.support.shared_server import Shared, on_shared_loop

APART, TOGETHER = "cafe\u0301 au lait", "café au lait"
APART_AGAIN, TOGETHER_AGAIN = "the\u0301 au citron", "thé au citron"


async def signs_in(browser: PageClient, email: str, password: str) -> bool:
    answer = await browser.sign_in(email, password)
    assert answer.status in {303, 422}
    return answer.status == 303


@pytest.mark.slow
@on_shared_loop
@pytest.mark.parametrize(("first", "second", "number"), [(APART, TOGETHER, 1), (TOGETHER, APART, 2)])
async def test_each_place_takes_either_form(shared: Shared, first: str, second: str, number: int) -> None:
    email = f"{number}@composed.test"
    again = {APART: APART_AGAIN, TOGETHER: TOGETHER_AGAIN}
    async with page_client(shared.client.root) as browser:
        assert (await browser.post("/register", {"email": email, "password": first})).status == 303
        assert [await signs_in(browser, email, each) for each in (first, second, "cafe au lait")] == [True, True, False]
        shared.store.write(lambda: api_access.grant(users.by_email(email), now=1)).result()
        body = {"email": email, "password": second, "token_name": "laptop"}
        logged_in = await shared.client.holding(None).post("auth/login", body)
        assert logged_in.status == 200
        client = shared.client.holding(logged_in.json["user"]["access_token"])
        assert (await client.post("access-tokens", {"name": "phone", "password": second})).status == 201
        changed = {"password": second, "new_password": again[first]}
        assert (await browser.post("/settings/password", changed)).status == 303
        assert await signs_in(browser, email, again[second])
        assert (
            await browser.post("/settings/developers/tokens", {"name": "tool", "password": again[second]})
        ).status == 200
        now = shared.clock.now()
        link = shared.store.write(lambda: password_links.create(users.by_email(email), now=now)).result()
        assert (await browser.post(f"/password/{link.secret}", {"new_password": first})).status == 303
        assert await signs_in(browser, email, second)
        by_api = {"email": f"api-{email}", "password": first}
        assert (await shared.client.holding(None).post("auth/register", by_api)).status == 200
        assert await signs_in(browser, f"api-{email}", second)


@pytest.mark.slow
@on_shared_loop
async def test_a_password_of_the_command_line_and_one_of_before_are_right(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", shared.store.url)
    for command in ("create", "password"):
        done = run_in_process(("user", command, "shell@composed.test", "--password-stdin"), f"{APART}\n")
        assert done.returncode == 0, done.stderr
        async with page_client(shared.client.root) as browser:
            assert await signs_in(browser, "shell@composed.test", TOGETHER)
    before = passwords.HASHER.hash(APART)
    shared.store.write(lambda: users.create("before@composed.test", password_hash=before, now=1)).result()
    async with page_client(shared.client.root) as browser:
        assert await signs_in(browser, "before@composed.test", APART)
        assert "before@composed.test" in text(await browser.get("/settings"))
