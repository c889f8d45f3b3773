"""Sign in and out in a browser: sessions, redirects, limits."""

from urllib.parse import quote, urlencode

import pytest

from musicsvc.clock import DAY, MINUTE
from musicsvc.config import Server, Settings
from musicsvc.store import opening
from musicsvc.store.accounts import sign_in as credentials
from musicsvc.store.accounts import users
from musicsvc.store.security import sessions
from tests.rights.world import PASSWORD
from tests.support.page_client import PageClient, add_account, add_session, page_client, text
from tests.support.raw_connection import connected, request
from tests.support.serving import running
from tests.support.shared_server import Shared, on_shared_loop

HOUR = 60 * MINUTE
WRONG = "The e-mail or the password is wrong."


async def is_signed_in(browser: PageClient) -> bool:
    return "Sign out" in text(await browser.get("/"))


@on_shared_loop
async def test_sign_in_starts_a_new_session_and_sign_out_ends_it(limited: Shared, browser: PageClient) -> None:
    user_id = add_account(limited, "clara@way.test")
    assert not await is_signed_in(browser)
    await browser.form_token()
    before = browser.cookies["musicsvc"]

    answer = await browser.sign_in(" CLARA@way.test ")
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert cookie.partition(";")[2] == " Path=/; HttpOnly; SameSite=Lax"
    session = browser.cookies["musicsvc"]
    assert session != before  # whoever set the cookie before does not know the session
    assert await is_signed_in(browser)
    assert (await browser.get("/sign-in?next=/settings")).headers["Location"] == "/settings"

    again = await browser.sign_in("clara@way.test")
    assert again.status == 303
    assert browser.cookies["musicsvc"] != session
    now = limited.clock.now()
    assert [found.agent for found in limited.store.read(lambda: sessions.list(user_id, now=now)).result()] == [
        "Tests/1.0"
    ]

    refused = await browser.sign_in("clara@way.test", "not this one")
    assert refused.status == 422
    assert WRONG in text(refused)
    assert await is_signed_in(browser)

    kept = dict(browser.cookies)
    assert (await browser.post("/sign-out")).headers["Location"] == "/"
    assert "musicsvc" not in browser.cookies
    assert "You are signed out." in text(await browser.get("/"))
    assert "You are signed out." not in text(await browser.get("/"))
    browser.cookies = kept
    assert not await is_signed_in(browser)


@on_shared_loop
async def test_a_session_ends_after_12_hours_idle_or_30_days(limited: Shared, browser: PageClient) -> None:
    user_id = add_account(limited, "ann@way.test")
    browser.cookies = {"musicsvc": add_session(limited, user_id)}
    began = limited.clock.now()
    for _ in range(60):
        limited.clock.advance(12 * HOUR - MINUTE)
        assert await is_signed_in(browser)
    assert limited.clock.now() - began > 29 * DAY
    limited.clock.advance(began + 30 * DAY - limited.clock.now() - 1)
    assert await is_signed_in(browser)
    limited.clock.advance(1)
    assert not await is_signed_in(browser)

    browser.cookies = {"musicsvc": add_session(limited, user_id)}
    limited.clock.advance(12 * HOUR - 1)
    assert await is_signed_in(browser)
    limited.clock.advance(12 * HOUR)
    assert not await is_signed_in(browser)


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/settings", "/settings"),
        ("/insights/tracks/7?period=7-days", "/insights/tracks/7?period=7-days"),
        pytest.param(f"/{'x' * 2047}", f"/{'x' * 2047}", id="longest"),
        pytest.param(f"/{'x' * 2048}", "/", id="too long"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("\\/evil.test", "/"),
        ("https://evil.test", "/"),
        ("/\t/evil.test", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("javascript:alert(1)", "/"),
        ("evil.test", "/"),
        ("", "/"),
    ],
)
@on_shared_loop
async def test_sign_in_leads_to_own_paths_only(limited: Shared, wanted: str, reached: str) -> None:
    email = f"open{abs(hash(wanted))}@way.test"
    add_account(limited, email)
    async with page_client(limited.client.root) as browser:
        answer = await browser.sign_in(email, path=f"/sign-in?next={quote(wanted, safe='')}")
        assert (answer.status, answer.headers["Location"]) == (303, reached)


@on_shared_loop
async def test_a_wrong_password_and_an_unknown_or_suspended_account_look_alike(
    limited: Shared, browser: PageClient
) -> None:
    browser.move(1)
    add_account(limited, "known@way.test")
    suspended = add_account(limited, "suspended@way.test")
    now = limited.clock.now()
    limited.store.write(lambda: users.suspend(users.get(suspended), now=now)).result()
    limited.store.write(lambda: users.create("without@way.test", now=now)).result()
    given = [("known", "not this one"), ("unknown", PASSWORD), ("suspended", PASSWORD), ("without", PASSWORD)]
    shown = set()
    for name, password in given:
        answer = await browser.sign_in(f"{name}@way.test", password)
        assert answer.status == 422
        page = text(answer)
        assert f'value="{name}@way.test"' in page
        assert f'<small class="error" id="email-error">{WRONG}</small>' in page
        assert password not in page
        assert not any(header.startswith("RateLimit") for header in answer.headers)
        shown.add(page.replace(name, "NAME").partition("form_token")[0] + page.partition("E-mail")[2].replace(name, ""))
    assert len(shown) == 1


@on_shared_loop
async def test_the_cookie_means_nothing_to_the_api(limited: Shared, browser: PageClient) -> None:
    browser.cookies = {"musicsvc": add_session(limited, add_account(limited, "api@way.test", api_access=True))}
    assert await is_signed_in(browser)
    answer = await browser.get("/api/v1/users/me")
    assert (answer.status, answer.json) == (401, {"message": "Unauthenticated."})


@on_shared_loop
async def test_over_https_the_cookie_belongs_to_this_host_alone(limited: Shared, browser: PageClient) -> None:
    add_account(limited, "tls@way.test")
    browser.move(6)
    answer = await browser.sign_in("tls@way.test")
    name, _, rest = answer.headers["Set-Cookie"].partition("=")
    assert (name, rest.partition(";")[2]) == ("__Host-musicsvc", " Path=/; HttpOnly; SameSite=Lax; Secure")
    assert await is_signed_in(browser)
    browser.cookies = {"musicsvc": browser.cookies["__Host-musicsvc"]}  # any host of the domain could have set this one
    assert not await is_signed_in(browser)


@on_shared_loop
async def test_behind_a_public_address_forms_come_from_there(limited: Shared) -> None:
    add_account(limited, "hosted@way.test")
    hosted = Settings(server=Server(public_url="https://Music.example.test:443/"))
    async with running(limited.store, limited.clock, hosted) as client, page_client(client.root) as browser:
        browser.move(7)
        assert (await browser.sign_in("hosted@way.test")).status == 403
        accepted = await browser.sign_in("hosted@way.test", Origin="https://music.example.test")
        assert accepted.status == 303


@pytest.mark.on_both
@on_shared_loop
async def test_another_process_knows_the_session_and_its_end_at_once(limited: Shared, browser: PageClient) -> None:
    user_id = add_account(limited, "nodes@way.test")
    with opening.connect(limited.store.url) as store:
        async with running(store, limited.clock) as client, page_client(client.root) as other:
            other.cookies = browser.cookies = {"musicsvc": add_session(limited, user_id)}
            assert await is_signed_in(browser)
            assert await is_signed_in(other)
            await browser.post("/sign-out")
            assert not await is_signed_in(other)


@pytest.mark.on_both
@on_shared_loop
async def test_a_password_changed_during_sign_in_does_not_sign_in(limited: Shared) -> None:
    user_id = add_account(limited, "race@way.test")
    before = limited.store.read(lambda: credentials.by_email("race@way.test")).result()
    assert limited.store.write(lambda: credentials.still_valid(before)).result() is not None
    limited.store.write(lambda: users.set_password(users.get(user_id), "another hash", now=1)).result()
    assert limited.store.write(lambda: credentials.still_valid(before)).result() is None


@pytest.mark.parametrize(
    "header",
    [
        "Host: [",
        "Cookie: musicsvc=\udcff\udc80;;;=;",
        f"Cookie: musicsvc={'a' * 43}; musicsvc_notice=e30=",
        "Cookie: musicsvc_notice=Ilx1ZDgwMCI=",  # half of a surrogate pair
        "Cookie: musicsvc_notice=/w==",
        "Accept: \udcff",
    ],
)
@on_shared_loop
async def test_malformed_headers_do_no_harm(limited: Shared, header: str) -> None:
    async with connected(limited.client.root) as wire:
        host = [] if header.startswith("Host") else ["Host: localhost"]
        lines = ["GET / HTTP/1.1", *host, header, "", ""]
        await wire.send("\r\n".join(lines).encode("utf-8", "surrogateescape"))
        assert (await wire.answer()).status == (200 if host else 403)


@on_shared_loop
async def test_a_browser_with_an_unreadable_name_can_sign_in(limited: Shared, browser: PageClient) -> None:
    user_id = add_account(limited, "unnamed@way.test")
    form = {"email": "unnamed@way.test", "password": PASSWORD, "form_token": await browser.form_token()}
    headers = [f"Cookie: musicsvc={browser.cookies['musicsvc']}", "Origin: http://localhost", "User-Agent: \udcff"]
    headers.append("Content-Type: application/x-www-form-urlencoded")
    async with connected(limited.client.root) as wire:
        await wire.send(request("POST", "/sign-in", *headers, body=urlencode(form).encode()))
        assert (await wire.answer()).status == 303
    now = limited.clock.now()
    assert [found.agent for found in limited.store.read(lambda: sessions.list(user_id, now=now)).result()] == ["?"]
