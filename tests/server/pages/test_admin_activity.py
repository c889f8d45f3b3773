"""The pages of administration about API calls, security events, and the state of the installation."""

import re
from pathlib import Path

import pytest

from musicsvc.clock import MINUTE
from musicsvc.store.accounts import password_links, tokens, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.backups.create import create
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator
from tests.cli.test_activity import CALL
from tests.support.office import Office
from tests.support.page_client import page_client, text
from tests.support.page_outline import outline
from tests.support.shared_server import on_shared_loop
from tests.support.waiting import until

HEAD = "Time | What | Account | Token | Details"


async def lines(office: Office, path: str) -> list[str]:
    return outline((await office.browser.get(path)).body)


async def rows_of(office: Office, query: str) -> list[str]:
    """Return the rows of the table of activity."""
    shown = await lines(office, f"/admin/activity?{query}")
    return shown[shown.index(HEAD) + 1 :]


@on_shared_loop
async def test_calls_and_events_are_listed_and_calls_explained(office: Office) -> None:
    ben, now = office.account(api_access=True), office.shared.clock.now()
    laptop, _ = office.token(ben)
    administrator = Administrator(office.admin)
    admin = f"[/admin/accounts/{office.admin}] ann@{office.domain}"
    owner, token = f"[/admin/accounts/{ben}] ben@{office.domain}", f"[/admin/tokens/{laptop}] {laptop}"
    own = CALL._replace(account_id=ben, token_id=laptop, address="198.51.100.78", at=now, size=12_345)
    stranger = CALL._replace(account_id=None, token_id=None, route=None, resource=None, address="198.51.100.78")
    with activity_log.build(office.shared.store.url) as log:
        log.prepare()
        rows = [
            own,
            own._replace(at=now + MINUTE, request_id="second"),
            own._replace(at=now + 2 * MINUTE, request_id="third", status=429, retry_after=17, resource=None),
            stranger._replace(at=now + 3 * MINUTE, status=404, method="POST"),
            stranger._replace(at=now + 4 * MINUTE, status=404, request_id=""),
            stranger._replace(at=now + 5 * MINUTE, status=403, request_id="", calls=1_200),
        ]
        log.write(lambda: calls.add(rows)).result()

    route, size = "/api/v1/playlists/{id}", "3.2 ms, 12,345 bytes"
    assert await rows_of(office, "address=198.51.100.78") == [
        "1 Mar 2026, 12:05:00 UTC | 403 1,200 more calls without a token in this minute | – | | 198.51.100.78",
        "1 Mar 2026, 12:04:00 UTC | 404 1 more call without a token in this minute | – | | 198.51.100.78",
        "1 Mar 2026, 12:03:00 UTC | 404 POST (no endpoint) | – | | 198.51.100.78, 3.2 ms, 80 bytes, first",
        (
            f"1 Mar 2026, 12:02:00 UTC | 429 GET {route} | {owner} | {token} | 198.51.100.78, {size},"
            " retry after 17 s, third"
        ),
        f"1 Mar 2026, 12:01:00 UTC | 200 GET {route} playlists/7 | {owner} | {token} | 198.51.100.78, {size}, second",
        f"1 Mar 2026, 12:00:00 UTC | 200 GET {route} playlists/7 | {owner} | {token} | 198.51.100.78, {size}, first",
    ]
    office.do(lambda: tokens.revoke(laptop, "abuse: hurried", now=now + MINUTE, actor="abuse"))
    office.do(lambda: users.suspend(users.get(ben), reason="scraping", now=now + 2 * MINUTE, actor=administrator))
    office.do(lambda: users.reinstate(users.get(ben), now=now + 3 * MINUTE, actor=administrator))
    assert await rows_of(office, f"kind=events&account=ben@{office.domain}") == [
        f"1 Mar 2026, 12:03:00 UTC | account.reinstated | {owner} | | by admin {admin}",
        f"1 Mar 2026, 12:02:00 UTC | account.suspended | {owner} | | by admin {admin}: scraping",
        f"1 Mar 2026, 12:01:00 UTC | token.revoked | {owner} | {token} | by abuse: hurried",
        f"1 Mar 2026, 12:00:00 UTC | token.created | {owner} | {token} | by cli",
        f"1 Mar 2026, 12:00:00 UTC | access.granted | {owner} | | by cli",
        f"1 Mar 2026, 12:00:00 UTC | account.created | {owner} | | by cli",
    ]
    of_token = await rows_of(office, f"kind=events&token={laptop}")
    assert [row.split(" | ")[1] for row in of_token] == ["token.revoked", "token.created"]
    assert await lines(office, f"/admin/abuse/{laptop}") == [
        f"Token {laptop} by the abuse rules",
        f"Token {laptop} by the abuse rules",
        f"Account: {owner}",
        f"Token: [/admin/tokens/{laptop}] {laptop}",
        "Revoked: 1 Mar 2026, 12:01 UTC: abuse: hurried",
        "Result: These calls break no rule.",
        "Rate limit: 1 of 100 requests refused with 429 in 300 s without a pause; 0 came too early",
        "Probing: 0 of 50 different resources denied in 60 s; 0 of 0 calls successful (10 % required)",
        "First call: 1 Mar 2026, 12:00 UTC",
        "Last call: 1 Mar 2026, 12:02 UTC",
        "Responses to its calls",
        "Status | Endpoint | Calls",
        f"200 | {route} | 2",
        f"429 | {route} | 1",
    ]


@pytest.mark.on_both
@on_shared_loop
async def test_activity_is_filtered_and_continues(office: Office) -> None:
    user_id, now = office.account(api_access=True), office.shared.clock.now()
    own = CALL._replace(account_id=user_id, token_id=None, address="198.51.100.77")
    # 120 calls, the 49th to 52nd newest at the same time: a page ends between calls of different times.
    times = [now - 1000 - (max(n, 51) if 48 <= n <= 51 else n) for n in range(120)]
    rows = [own._replace(at=at, request_id=f"r-{n}.", status=[200, 404][n % 2]) for n, at in enumerate(times)]
    with activity_log.build(office.shared.store.url) as log:
        log.prepare()
        log.write(lambda: calls.add(rows)).result()
    office.do(lambda: users.suspend(users.get(user_id), reason="late", now=now))

    path, found, pages = f"/admin/activity?account=ben@{office.domain}&kind=calls", [], 0
    while path and pages < 9:
        page = await office.page(path)
        assert "account.suspended" not in page
        found += re.findall(r"<code>r-(\d+)\.</code>", page)
        more = re.findall(r'href="/admin/activity(\?[^"]*before=[^"]*)"', page)
        path, pages = f"/admin/activity{more[0]}" if more else "", pages + 1
    assert sorted(map(int, found)) == list(range(120))
    assert pages == 3

    both = await office.page(f"/admin/activity?account=ben@{office.domain}")
    assert "account.suspended" in both
    assert "by cli: late" in both
    assert "account.suspended" not in await office.page("/admin/activity?address=198.51.100.77&status=4xx")
    assert len(re.findall(r"404 GET", await office.page("/admin/activity?address=198.51.100.77&status=4xx"))) == 50
    nothing = await office.page("/admin/activity?route=no-such-route")
    assert "Nothing matches these conditions. Calls are kept for 90 days" in nothing


@on_shared_loop
async def test_files_and_own_clicks_are_hidden_until_they_are_asked_for(office: Office) -> None:
    now = office.shared.clock.now()
    click = CALL._replace(account_id=office.admin, token_id=None, route="/insights", at=now, address="198.51.100.79")
    rows = [
        click._replace(request_id="own-click"),
        click._replace(request_id="own-call", token_id=7),
        click._replace(request_id="click-of-ben", account_id=office.account()),
        click._replace(request_id="file", account_id=None, route="/static/{name}"),
        click._replace(request_id="script", account_id=None, route="/docs/{name}"),
        click._replace(request_id="picture", account_id=None, route="/thumbnails/album/{id}"),
        click._replace(request_id="stranger", account_id=None, route=None),
    ]
    with activity_log.build(office.shared.store.url) as log:
        log.prepare()
        log.write(lambda: calls.add(rows)).result()

    async def shown(query: str) -> set[str]:
        page = await office.page(f"/admin/activity?{query}")
        return {row.request_id for row in rows} & {*re.findall(r"<code>([a-z-]+)</code>", page)}

    everything = {row.request_id for row in rows}
    usual = {"own-call", "click-of-ben", "stranger"}
    assert await shown("address=198.51.100.79") == usual
    assert await shown("address=198.51.100.79&hidden=shown") == everything
    assert await shown(f"address=198.51.100.79&account=ann@{office.domain}") == {"own-click", "own-call"}
    assert await shown("address=198.51.100.79&route=static") == {"file"}
    page = await office.page("/admin/activity?address=198.51.100.79")
    assert (
        'Files of pages and your own clicks are hidden. <a href="/admin/activity?address=198.51.100.79&hidden=shown">'
        in page
    )
    back = await office.page("/admin/activity?address=198.51.100.79&hidden=shown")
    assert '<a href="/admin/activity?address=198.51.100.79">Hide them</a>' in back
    assert "are hidden" not in await office.page("/admin/activity?kind=events")
    cells = re.findall(r"<t[dh] ?[^>]*>", back.partition("<tbody>")[2])
    assert all("data-label=" in cell for cell in cells)  # names the column where rows are cards


@on_shared_loop
async def test_faulty_filters_are_marked(office: Office) -> None:
    query = "account=nobody@x.test&token=x&status=9xx&since=yesterday&kind=events&address=192.0.2.1&route=art"
    answer = await office.browser.get(f"/admin/activity?{query}")
    assert answer.status == 422
    assert re.findall(r'id="(\w+)-error"', text(answer)) == ["kind", "account", "token", "since", "status"]
    shown = outline(answer.body)
    assert "[open]" in shown
    for words in (
        "Please correct the marked fields.",
        "[nobody@x.test] There is no account nobody@x.test.",
        "[x] 'x' is not the id of a token, a whole number.",
        "[yesterday] 'yesterday' is not a time (2026-01-31T12:00:00Z), nor an age (15m, 7d). 2h, 7d or 2026-01-31",
        "[9xx] '9xx' is not a valid status. Write 429, or 4xx for all from 400 to 499. 429 or 4xx",
        "[192.0.2.1]",
        "[art]",
    ):
        assert words in shown
    assert "[open]" in await lines(office, "/admin/activity?kind=calls")
    assert "[open]" not in await lines(office, "/admin/activity")
    await office.page("/admin/activity?since=999999999d")  # before 1970


@pytest.mark.on_both
@on_shared_loop
async def test_health_shows_the_checks_of_doctor(office: Office) -> None:
    before = await office.page("/admin/health")
    assert "Run the checks" in before
    assert "The schema is up to date." not in before
    answer = await office.browser.get("/admin/health?checks=run")
    shown = text(answer)
    assert "The schema is up to date." in shown
    assert "The stored lengths of lists are correct." in shown
    rows = [line.split(" | ") for line in outline(answer.body) if " | " in line][1:]
    wrong = [row for row in rows if row[0] != "[good] ok"]
    assert f"{len(wrong)} of {len(rows)} findings need{'s' * (len(wrong) == 1)} your attention." in shown
    assert [row in wrong for row in rows] == sorted([row in wrong for row in rows], reverse=True)  # wrong ones first
    assert ["[good] ok", "schema", "The schema is up to date. |"] in [row[:3] for row in rows]
    assert all(hint for *_, hint in wrong)
    part = text(await office.browser.get("/admin/health?checks=run", **{"HX-Request-Type": "partial"}))
    assert part.lstrip().startswith('<div id="checks">')


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_health_shows_the_last_backup(office: Office) -> None:
    file = Path(office.shared.store.url.removeprefix("sqlite:///"))
    folder = file.parent / "backups"

    async def last_backup() -> str:
        shown = await lines(office, "/admin/health")
        assert shown[:3] == ["Health", "Health", f"Database: {office.shared.store.url}"]
        return shown[3]

    assert await last_backup() == "Last backup: There is none yet. The server makes one every 24 hours."
    folder.write_bytes(b"")
    assert await last_backup() == f"Last backup: The folder {folder} cannot be read: Not a directory."
    folder.unlink()
    folder.mkdir()
    create(file, folder / "musicsvc-20260228T100000Z.db")
    assert await last_backup() == "Last backup: 28 Feb 2026, 10:00 UTC: musicsvc-20260228T100000Z.db"


@on_shared_loop
async def test_a_password_link_shows_in_no_log(office: Office) -> None:
    user_id, now = office.account(), office.shared.clock.now()
    secret = office.do(lambda: password_links.create(users.get(user_id), now=now)).secret
    async with page_client(office.shared.client.root) as other:
        assert (await other.get(f"/password/{secret}")).status == 200
        assert (await other.post(f"/password/{secret}", {"new_password": "x"})).status == 422

    def logged() -> list[Entry]:
        with activity_log.build(office.shared.store.url) as log:
            log.prepare()
            return log.read(lambda: calls.find(limit=1_000)).result()

    def statuses() -> list[int]:
        return sorted(entry.status for entry in logged() if entry.route == "/password/{link}")

    await until(lambda: statuses() == [200, 422])
    assert secret not in repr(logged())
    assert secret not in repr(office.do(lambda: security_events.find(limit=500)))
