"""The pages of administration: each act with its security event, lists, filters, and text that is no markup."""

import re
from functools import partial
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import Access
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import password_links, tokens, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from tests.cli.test_activity import CALL
from tests.faults import system
from tests.store.engine.test_disk_full import FullDisk
from tests.support.office import Office
from tests.support.page_client import add_session, page_client, text
from tests.support.serving import running
from tests.support.shared_server import Shared, on_shared_loop

SCRIPT = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


def link_of(page: str, root: str) -> str:
    """Return the secret of the password link that the page shows once."""
    (secret,) = re.findall(rf'<code id="link"[^>]*>{re.escape(root)}/password/([\w-]+)</code>', page)
    return str(secret)


def test_every_path_of_administration_is_for_administrators() -> None:
    paths = [route for route in ROUTES if route.path.startswith("/admin")]
    assert len(paths) > 19
    assert {route.access for route in paths} == {Access.ADMIN}


@on_shared_loop
async def test_a_request_is_approved_and_its_new_account_gets_a_link(office: Office) -> None:
    asked = office.request()
    assert f"cleo@{office.domain}" in await office.page("/admin")

    shown = text(await office.act(f"/admin/requests/{asked}/approve", 200))
    secret = link_of(shown, office.shared.client.root)
    now = office.shared.clock.now()
    user = office.do(lambda: password_links.find(secret, now=now))
    assert (user.email, user.api_access) == (f"cleo@{office.domain}", True)
    assert office.events() == [
        ("account.created", user.id, None, None),
        ("password.link_created", user.id, None, None),
        ("access.approved", user.id, None, f"request {asked}"),
        ("access.granted", user.id, None, None),
    ]
    again = text(await office.act(f"/admin/requests/{asked}/approve", 409))
    assert "is approved already" in again
    assert f"cleo@{office.domain}" in await office.page("/admin?show=decided")
    assert secret not in await office.page("/admin/activity")


@on_shared_loop
async def test_a_request_of_an_account_is_approved_without_a_link(office: Office) -> None:
    user_id, asked = office.account("cleo"), office.request()
    answer = await office.act(f"/admin/requests/{asked}/approve")
    assert answer.headers["Location"] == "/admin"
    assert f"cleo@{office.domain} has API access." in await office.page("/admin")
    assert [kind for kind, *_ in office.events()] == ["access.approved", "access.granted"]
    assert office.do(lambda: users.get(user_id).api_access) is True


@on_shared_loop
async def test_a_denial_needs_a_reason_and_keeps_what_was_typed(office: Office) -> None:
    asked = office.request()
    refused = text(await office.act(f"/admin/requests/{asked}/deny", 422, reason=""))
    assert '<small class="error" id="reason-error">This field is required.</small>' in refused
    too_long = text(await office.act(f"/admin/requests/{asked}/deny", 422, reason="why " * 300))
    assert "Must have at most 1000 characters." in too_long
    assert "why " * 20 in too_long
    assert office.events() == []

    await office.act(f"/admin/requests/{asked}/deny", reason=" Too vague. ")
    assert office.events() == [("access.denied", None, None, f"request {asked}: Too vague.")]
    assert "Too vague." in await office.page(f"/admin/requests/{asked}")


@on_shared_loop
async def test_an_account_is_created_and_gets_links(office: Office) -> None:
    typed = {"email": f"dora@{office.domain}", "display_name": "Dora"}
    root, now = office.shared.client.root, office.shared.clock.now()
    first = link_of(text(await office.act("/admin/accounts", 200, **typed)), root)
    user = office.do(lambda: password_links.find(first, now=now))
    assert (user.display_name, user.admin, user.api_access) == ("Dora", False, False)

    assert "<details>" in await office.page("/admin/accounts")
    taken = text(await office.act("/admin/accounts", 422, **typed))
    assert "<details open>" in taken
    assert "Please correct the marked field." in taken
    assert '<small class="error" id="email-error">The e-mail has already been taken.</small>' in taken
    assert f'value="dora@{office.domain}"' in taken

    second = link_of(text(await office.act(f"/admin/accounts/{user.id}/password-link", 200)), root)
    assert office.do(lambda: password_links.find(second, now=now)).id == user.id
    assert office.events() == [
        ("account.created", user.id, None, None),
        *[("password.link_created", user.id, None, None)] * 2,
    ]


@on_shared_loop
async def test_a_suspended_account_is_out_at_once(office: Office) -> None:
    user_id = office.account(api_access=True)
    _, value = office.token(user_id)
    holder = office.shared.client.holding(value)
    async with page_client(office.shared.client.root) as other:
        other.cookies = {"musicsvc": add_session(office.shared, user_id)}
        assert "Sign out" in text(await other.get("/"))
        assert (await holder("GET", "/api/v1/playlists")).status == 200

        await office.act(f"/admin/accounts/{user_id}/suspend", reason="scraping")
        assert (await holder("GET", "/api/v1/playlists")).status == 403
        assert "Sign out" not in text(await other.get("/"))
        assert "scraping" in await office.page(f"/admin/accounts/{user_id}")
        refused = text(await office.act(f"/admin/accounts/{user_id}/password-link", 409))
        assert "is suspended. Reinstate the account first." in refused

        await office.act(f"/admin/accounts/{user_id}/reinstate")
        assert (await holder("GET", "/api/v1/playlists")).status == 200
    assert office.events() == [
        ("account.suspended", user_id, None, "scraping"),
        ("account.reinstated", user_id, None, None),
    ]


@on_shared_loop
async def test_an_administrator_cannot_suspend_the_own_account(office: Office) -> None:
    assert "<details>" in await office.page(f"/admin/accounts/{office.admin}")
    refused = text(await office.act(f"/admin/accounts/{office.admin}/suspend", 409, reason="a mistake"))
    assert "<details open>" in refused
    assert "You cannot suspend your own account." in refused
    assert "Another administrator can suspend it." in await office.page(f"/admin/accounts/{office.admin}")
    assert office.events() == []


@on_shared_loop
async def test_a_suspended_administrator_is_out_at_once(office: Office) -> None:
    chief = office.account("chief", admin=True)
    office.do(lambda: users.suspend(users.get(office.admin), now=1, actor=security_events.Administrator(chief)))
    answer = await office.browser.get("/admin/accounts?q=a")
    assert (answer.status, answer.headers["Location"]) == (303, "/sign-in?next=/admin/accounts%3Fq%3Da")
    answer = await office.browser.post(f"/admin/accounts/{chief}/suspend", {"reason": "revenge"})
    assert (answer.status, answer.headers["Location"]) == (303, f"/sign-in?next=/admin/accounts/{chief}")
    assert office.do(lambda: users.get(chief).suspended_at) is None


@on_shared_loop
async def test_api_access_is_granted_and_revoked(office: Office) -> None:
    user_id = office.account(api_access=True)
    holder = office.shared.client.holding(office.token(user_id)[1])
    await office.act(f"/admin/accounts/{user_id}/revoke-access")
    assert (await holder("GET", "/api/v1/playlists")).status == 403
    await office.act(f"/admin/accounts/{user_id}/grant-access", 200)  # it shows the token
    assert (await holder("GET", "/api/v1/playlists")).status == 200
    assert office.events() == [("access.revoked", user_id, None, None), ("access.granted", user_id, None, None)]


@on_shared_loop
async def test_a_token_is_revoked_with_a_reason_and_reinstated(office: Office) -> None:
    user_id = office.account(api_access=True)
    token_id, value = office.token(user_id)
    holder = office.shared.client.holding(value)
    await office.act(f"/admin/tokens/{token_id}/revoke", 422, reason=" ")
    await office.act(f"/admin/tokens/{token_id}/revoke", reason="found in a log")
    assert (await holder("GET", "/api/v1/playlists")).status == 401
    assert "found in a log" in await office.page(f"/admin/tokens/{token_id}")
    await office.act(f"/admin/tokens/{token_id}/reinstate")
    assert (await holder("GET", "/api/v1/playlists")).status == 200
    assert office.events() == [
        ("token.revoked", user_id, token_id, "found in a log"),
        ("token.reinstated", user_id, token_id, None),
    ]
    office.do(lambda: tokens.delete(tokens.get(token_id), now=office.shared.clock.now(), actor="page"))
    assert "Reinstate" not in await office.page(f"/admin/tokens/{token_id}")
    refused = await office.act(f"/admin/tokens/{token_id}/reinstate", 409)  # from a page that was open before
    assert "was deleted by its owner and stays revoked." in text(refused)
    assert (await holder("GET", "/api/v1/playlists")).status == 401


@on_shared_loop
async def test_an_action_of_the_abuse_monitor_is_explained_and_undone(office: Office) -> None:
    user_id, now = office.account(api_access=True), office.shared.clock.now()
    token_id, value = office.token(user_id)
    own = CALL._replace(account_id=user_id, token_id=token_id, limits_apply=True)
    refused = [own._replace(at=now + n, status=429, retry_after=60, request_id=f"r{n}") for n in range(1, 131)]
    with activity_log.build(office.shared.store.url) as log:
        log.prepare()
        log.write(lambda: calls.add(refused)).result()
    office.do(lambda: tokens.revoke(token_id, "abuse: 100 requests refused", now=now + 200, actor="abuse"))

    shown = await office.page("/admin/abuse")
    assert '<dd class="text">100 requests refused</dd>' in shown
    assert f'action="/admin/tokens/{token_id}/reinstate"' in shown
    explained = await office.page(f"/admin/abuse/{token_id}")
    assert "100 requests refused with 429 within 1 second, without the pause that Retry-After asked for" in explained
    assert "100 of 100 requests refused with 429 in 300 s without a pause; 90 came too early" in explained
    assert re.search(r'<td>429</td><td><code>/api/v1/playlists/{id}</code></td><td class="number">100</td>', explained)

    await office.act(f"/admin/tokens/{token_id}/reinstate")
    assert (await office.shared.client.holding(value)("GET", "/api/v1/playlists")).status == 200
    assert f'action="/admin/tokens/{token_id}/reinstate"' not in await office.page("/admin/abuse")
    assert [(await office.browser.get(f"/admin/abuse/{each}")).status for each in (99_999, "x")] == [404, 404]


@pytest.mark.on_both
@on_shared_loop
async def test_lists_are_searched_and_continue(office: Office) -> None:
    now = office.shared.clock.now()
    office.do(lambda: [users.create(f"crowd{n}@{office.domain}", now=now) for n in range(53)])
    first = await office.page(f"/admin/accounts?q=@{office.domain}")
    older = re.findall(r'href="/admin/accounts(\?[^"]*before=[^"]*)"', first)
    assert len(re.findall(r'scope="row"', first)) == 50
    assert '" hx-get="/admin/accounts" ' in first
    second = await office.page(f"/admin/accounts{older[0]}")
    assert len(re.findall(r'scope="row"', second)) == 4  # 3 and the administrator
    assert f"ann@{office.domain}" in second
    assert "before=" not in second
    assert "No account has “nobody-at-all”" in await office.page("/admin/accounts?q=nobody-at-all")

    part = text(await office.browser.get(f"/admin/accounts?q=crowd7@{office.domain}", **{"HX-Request-Type": "partial"}))
    assert part.lstrip().startswith('<div id="results">')
    assert re.findall(r"crowd\d+@", part) == ["crowd7@"]

    user_id = office.account(api_access=True)
    ids = [office.token(user_id, f"token {n} of {office.domain}")[0] for n in range(51)]
    listed = await office.page(f"/admin/tokens?q=of {office.domain}".replace(" ", "%20"))
    assert [int(each) for each in re.findall(r'row"><a href="/admin/tokens/(\d+)"', listed)] == ids[:0:-1]
    for number in range(51):
        office.request(f"asks{number}")
    (more,) = re.findall(r'href="/admin(\?before=\d+)"', await office.page("/admin"))
    assert "asks0@" in await office.page(f"/admin{more}")
    event = partial(security_events.add, "token.revoked", now=now, actor="abuse")
    office.do(lambda: [event(reason=f"abuse: no. {number}.") for number in range(51)])
    (more,) = re.findall(r'href="/admin/abuse(\?before=\d+)"', await office.page("/admin/abuse"))
    assert "no. 0." in await office.page(f"/admin/abuse{more}")


@on_shared_loop
async def test_names_and_reasons_are_text_on_every_page(office: Office) -> None:
    user_id = office.account("eve", api_access=True, display_name=SCRIPT)
    name = "<script>alert(2)</script>"
    token_id, _ = office.token(user_id, name)
    pending, denied = office.request("cleo", SCRIPT, SCRIPT, SCRIPT), office.request("dora", SCRIPT, SCRIPT, SCRIPT)
    await office.act(f"/admin/requests/{denied}/deny", reason=SCRIPT)
    office.do(lambda: tokens.revoke(token_id, f"abuse: {SCRIPT}", now=2, actor="abuse"))
    await office.act(f"/admin/accounts/{user_id}/suspend", reason=SCRIPT)
    paths = [
        "/admin",
        "/admin?show=decided",
        f"/admin/requests/{pending}",
        f"/admin/requests/{denied}",
        f"/admin/accounts?q={office.domain}",
        f"/admin/accounts/{user_id}",
        f"/admin/tokens?q={office.domain}",
        f"/admin/tokens/{token_id}",
        "/admin/abuse",
        f"/admin/abuse/{token_id}",
        f"/admin/activity?account=eve@{office.domain}",
    ]
    for path in paths:
        raw = (await office.browser.get(path)).body.decode()
        assert "&lt;script&gt;alert(" in raw, path
        assert "<script>alert(" not in raw, path
        assert "<img src=x" not in raw, path
    searched = (await office.browser.get("/admin/accounts?q=%22%3E%3Cscript%3Ealert(1)")).body.decode()
    assert "&#34;&gt;&lt;script&gt;alert(1)" in searched
    assert "<script>alert(" not in searched


@pytest.mark.only_on("sqlite")
async def test_on_a_full_disk_rights_are_taken_away(store: Store, clock: MovableClock) -> None:
    file = Path(store.url.removeprefix("sqlite:///"))
    async with running(store, clock) as client, page_client(client.root) as browser:
        office = Office(Shared(client, store, clock), browser, 0)
        user_id = office.account(api_access=True)
        token_id, value = office.token(user_id)
        await browser.form_token()
        store.reserve_space()
        with system.calls(file.parent) as disk:
            disk.fault = FullDisk(file)
            assert (await browser.post(f"/admin/accounts/{user_id}/grant-access")).status == 503
            await office.act(f"/admin/tokens/{token_id}/revoke", reason="leaked")
            await office.act(f"/admin/accounts/{user_id}/revoke-access")
            await office.act(f"/admin/accounts/{user_id}/suspend", reason="scraping")
        assert (await client.holding(value)("GET", "/api/v1/playlists")).status == 401
        assert [kind for kind, *_ in office.events()] == ["token.revoked", "access.revoked", "account.suspended"]
