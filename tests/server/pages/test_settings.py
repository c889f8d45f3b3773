"""Registration, one-time links to set a password, and the settings of the own account, without JavaScript."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from musicsvc.config import Registration, Settings
from musicsvc.store.accounts import password_links, users
from musicsvc.store.engine import bulk
from musicsvc.store.models import Session
from musicsvc.store.security import sessions
from tests.faults.locking import locked
from tests.rights.world import PASSWORD
from tests.support import databases
from tests.support.page_client import PageClient, add_account, add_session, page_client, text
from tests.support.shared_server import Shared, on_shared_loop, shared_server

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

NEW = "four romances for violin"


@pytest_asyncio.fixture(loop_scope="module")
async def browser(shared: Shared) -> AsyncIterator[PageClient]:
    async with page_client(shared.client.root) as opened:
        yield opened


async def reads_settings(browser: PageClient) -> bool:
    answer = await browser.get("/settings")
    assert answer.status == 200 or answer.headers["Location"] == "/sign-in?next=/settings"
    return answer.status == 200


@on_shared_loop
async def test_an_account_is_created_and_signed_in(browser: PageClient) -> None:
    answer = await browser.post("/register", {"email": "hello@new.test", "password": PASSWORD})
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    home = text(await browser.get("/"))
    assert "Your account is ready." in home
    assert "Welcome, hello" in home
    assert await reads_settings(browser)


@on_shared_loop
async def test_a_form_keeps_what_was_typed_and_names_the_errors(shared: Shared, browser: PageClient) -> None:
    add_account(shared, "taken@new.test")
    answer = await browser.post("/register", {"email": "taken@new.test", "password": "short1"})
    page = text(answer)
    assert answer.status == 422
    assert "Please correct the marked fields." in page
    assert 'value="taken@new.test" required aria-invalid="true" autofocus aria-describedby="email-error"' in page
    assert re.findall(r'<input id="(\w+)"[^>]* autofocus', page) == ["email", "password"]  # of these, the first gets it
    assert '<small class="error" id="email-error">The e-mail has already been taken.</small>' in page
    assert 'perhaps created a moment ago, <a href="/sign-in">' in page
    assert "The password must have 8 to 128 characters." in page
    assert "short1" not in page
    answer = await browser.post("/register", {"email": "", "password": PASSWORD})
    assert '<small class="error" id="email-error">This field is required.</small>' in text(answer)
    for path in ("/", "/settings", "/register"):
        assert "The e-mail has already been taken." not in text(await browser.get(path))


@on_shared_loop
async def test_a_form_that_has_signed_in_or_out_says_so_when_it_is_sent_again(browser: PageClient) -> None:
    new = {"email": "again@new.test", "password": PASSWORD}
    for path, fields, again, told in (
        ("/register", new, 403, "You are signed in as again@new.test."),
        ("/sign-out", {}, 403, "<h1>Sign in"),
        ("/sign-in", new, 403, "You are signed in as again@new.test."),
        ("/settings/delete", new, 303, "so nothing of it was saved. If you sent it twice, the first may have been."),
    ):
        sent = fields | {"form_token": await browser.form_token()}
        first, twin = [await browser.post(path, sent) for _ in range(2)]
        assert (first.status, twin.status) == (303, again)
        assert told in text(twin if again == 403 else await browser.get(twin.headers["Location"]))


async def test_closed_registration_is_not_offered(template: databases.Template, tmp_path: Path) -> None:
    settings = Settings(registration=Registration(open=False))
    async with shared_server(template, tmp_path, settings) as closed, page_client(closed.client.root) as browser:
        assert "/register" not in text(await browser.get("/")) + text(await browser.get("/sign-in"))
        answers = [await browser.get("/register"), await browser.post("/register", {"email": "a@b.test"})]
        assert [answer.status for answer in answers] == [403, 403]
        assert "Registration is closed." in text(answers[1])


@on_shared_loop
async def test_a_link_sets_a_password_once(shared: Shared, browser: PageClient) -> None:
    now = shared.clock.now()
    shared.store.write(lambda: users.create("linked@new.test", now=now)).result()
    link = shared.store.write(lambda: password_links.create(users.by_email("linked@new.test"), now=now)).result()
    path = f"/password/{link.secret}"
    for _ in range(2):  # looking at the page does not use up the link
        assert 'value="linked@new.test"' in text(await browser.get(path))
    for wrong in ("short", "linked@new.test"):
        refused = await browser.post(path, {"new_password": wrong})
        assert refused.status == 422
        assert 'id="new_password-error">The password must' in text(refused)
    answer = await browser.post(path, {"new_password": NEW})
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert "Your password is set, and you are signed in." in text(await browser.get("/"))
    for answer in (await browser.get(path), await browser.post(path, {"new_password": PASSWORD})):
        assert answer.status == 404
        assert "If you have set your password with it, sign in" in text(answer)
    await browser.post("/sign-out")
    assert (await browser.sign_in("linked@new.test", PASSWORD)).status == 422
    assert (await browser.sign_in("linked@new.test", NEW)).status == 303


@on_shared_loop
async def test_a_new_password_signs_the_other_browsers_out(shared: Shared, browser: PageClient) -> None:
    user_id = add_account(shared, "change@new.test")
    other = add_session(shared, user_id)
    browser.cookies = {"musicsvc": add_session(shared, user_id)}
    wrong = await browser.post("/settings/password", {"password": "not this", "new_password": NEW})
    assert wrong.status == 422
    assert 'id="password-error">The password is wrong.' in text(wrong)
    short = await browser.post("/settings/password", {"password": PASSWORD, "new_password": "short"})
    assert 'id="new_password-error">The password must have 8' in text(short)
    answer = await browser.post("/settings/password", {"password": PASSWORD, "new_password": NEW})
    assert (answer.status, answer.headers["Location"]) == (303, "/settings")
    assert "Your password is changed. All other browsers are signed out." in text(await browser.get("/settings"))
    browser.cookies = {"musicsvc": other}
    assert not await reads_settings(browser)
    assert (await browser.sign_in("change@new.test", PASSWORD)).status == 422
    assert (await browser.sign_in("change@new.test", NEW)).status == 303


@on_shared_loop
async def test_sessions_are_listed_and_ended_by_their_owner(shared: Shared, browser: PageClient) -> None:
    user_id = add_account(shared, "many@new.test")
    tokens = [add_session(shared, user_id, ago=ago) for ago in (7200, 3600, 60)]
    expired = add_session(shared, user_id, ago=12 * 3600)
    browser.cookies = {"musicsvc": tokens[2]}
    page = text(await browser.get("/settings"))
    assert page.count("This browser") == 1
    ends = [part.partition('"')[0] for part in page.split('action="/settings/sessions/')[1:]]
    assert len(ends) == 3  # of two other sessions, and of all others
    assert ends[2] == "end-others"
    assert (await browser.post(f"/settings/sessions/{ends[0]}")).status == 303  # the newest other one
    found = {}
    for token in (*tokens, expired):
        browser.cookies = {"musicsvc": token}
        found[token] = await reads_settings(browser)
    assert list(found.values()) == [True, False, True, False]
    browser.cookies = {"musicsvc": tokens[2]}
    await browser.post("/settings/sessions/end-others")
    assert await reads_settings(browser)
    browser.cookies = {"musicsvc": tokens[0]}
    assert not await reads_settings(browser)


@on_shared_loop
async def test_a_page_is_shown_while_another_process_keeps_the_use_of_its_session_from_being_noted(
    shared: Shared, browser: PageClient
) -> None:
    user_id = add_account(shared, "patient@new.test")
    browser.cookies = {"musicsvc": add_session(shared, user_id, ago=120)}
    with locked(Path(shared.store.url.removeprefix("sqlite:///"))):
        async with asyncio.timeout(3):  # a write waits for 5 seconds
            assert await reads_settings(browser)


@on_shared_loop
async def test_a_page_lists_50_sessions_and_the_next_one_the_others(shared: Shared, browser: PageClient) -> None:
    """A database of before there was a maximum has more."""
    user_id, now = add_account(shared, "crowd@new.test"), shared.clock.now()
    columns = ("user", "digest", "created_at", "last_used_at", "address", "agent")
    values = [f"{number:043}" for number in range(121)]
    rows = [(user_id, sessions.digest(each), now, now, f"10.0.0.{each[-3:]}", "") for each in values]
    shared.store.write(lambda: bulk.insert(Session, columns, rows)).result()
    browser.cookies = {"musicsvc": values[60]}
    path = "/settings"
    listed: list[str] = []
    sizes = []
    while path:
        page = text(await browser.get(path))
        found = re.findall(r"<small>10\.0\.0\.(\d+) · signed in", page)
        listed += found
        sizes.append(len(found))
        older = re.search(r'href="/settings(\?before=\d+)"', page)
        path = f"/settings{older[1]}" if older else ""
    assert sizes == [50, 50, 21]
    assert listed == [each[-3:] for each in reversed(values)]
    add_session(shared, user_id)
    assert len(shared.store.read(lambda: sessions.list(user_id, now=now, limit=99)).result()) == 50


@on_shared_loop
async def test_registering_and_using_a_link_while_signed_in_ends_the_session_before(
    shared: Shared, browser: PageClient
) -> None:
    owner, now = add_account(shared, "before@new.test"), shared.clock.now()
    user_id = add_account(shared, "after@new.test")
    link = shared.store.write(lambda: password_links.create(users.get(user_id), now=now)).result()
    for path, fields, signed_in in (
        (f"/password/{link.secret}", {"new_password": NEW}, "after@new.test"),
        ("/register", {"email": "added@new.test", "password": NEW}, "added@new.test"),
    ):
        before = add_session(shared, owner)
        browser.cookies = {"musicsvc": before}
        if "new_password" in fields:
            assert "You are signed in as before@new.test, and are signed out here." in text(await browser.get(path))
        assert (await browser.post(path, fields)).status == 303
        assert f"You are signed in as <strong>{signed_in}" in text(await browser.get("/settings"))
        browser.cookies = {"musicsvc": before}
        assert not await reads_settings(browser)


@on_shared_loop
async def test_a_suspended_account_is_out_at_once_and_stays_out(shared: Shared, browser: PageClient) -> None:
    user_id, now = add_account(shared, "out@new.test"), shared.clock.now()
    browser.cookies = {"musicsvc": add_session(shared, user_id)}
    assert await reads_settings(browser)
    shared.store.write(lambda: users.suspend(users.get(user_id), now=now)).result()
    assert not await reads_settings(browser)
    browser.cookies = {"musicsvc": add_session(shared, user_id)}  # by a sign-in that began before
    assert not await reads_settings(browser)
    shared.store.write(lambda: sessions.end_all(user_id)).result()
    shared.store.write(lambda: users.reinstate(users.get(user_id), now=now)).result()
    assert not await reads_settings(browser)


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/nope", "text/html", "text/html"),
        ("/nope", "text/html,application/json", "text/html"),
        ("/nope", "*/*", "application/json"),
        ("/nope", "application/json", "application/json"),
        ("/api/v1/nope", "text/html", "application/json"),
        ("/password/x", "*/*", "text/html"),
        ("/password/x", "application/json", "application/json"),
    ],
)
@on_shared_loop
async def test_browsers_get_error_pages_and_clients_json(
    browser: PageClient, path: str, accept: str, kind: str
) -> None:
    answer = await browser.get(path, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (404, kind)
    if kind == "application/json":
        assert list(answer.json) == ["status", "message", "errors"]
    else:
        assert "<title>Page not found · musicsvc</title>" in text(answer)
