"""The page that each form leads to, and the notice that it shows there."""

import json
import re
from base64 import urlsafe_b64decode

from musicsvc.clock import SECOND
from musicsvc.store.security import sessions
from tests.rights.world import PASSWORD
from tests.support.office import Office
from tests.support.page_client import add_session
from tests.support.shared_server import on_shared_loop

NEW = "four romances for violin"
NOTICE = re.compile(r"musicsvc_notice=([\w=-]+);")


@on_shared_loop
async def test_each_form_leads_to_a_page_and_says_what_it_did(office: Office) -> None:
    ben, now = office.account(api_access=True), office.shared.clock.now()
    laptop, _ = office.token(ben)
    add_session(office.shared, office.admin, ago=60)
    listed = office.do(lambda: sessions.list(office.admin, now=now))
    other = next(session.id for session in listed if session.created_at == now - 60 * SECOND)
    approved, denied = office.request("cleo"), office.request("dora")
    found = []

    async def send(path: str, **fields: str) -> None:
        answer = await office.browser.post(path, fields)
        notices = NOTICE.findall(" ".join(answer.headers.getall("Set-Cookie", [])))  # type: ignore[attr-defined]
        text = [json.loads(urlsafe_b64decode(notice)) for notice in notices]
        found.append((answer.status, answer.headers.get("Location"), *text))

    await send("/settings/name", display_name="Dora")
    await send(f"/settings/sessions/{other}/end")
    await send("/settings/sessions/end-others")
    await send("/settings/access", use_case="Charts", volume="Little", organization="None")
    await send(f"/admin/accounts/{office.admin}/grant-access")
    own, _ = office.token(office.admin, "own")
    await send(f"/settings/developers/tokens/{own}/delete")
    await send(f"/admin/requests/{approved}/approve")
    await send(f"/admin/requests/{denied}/deny", reason="No")
    await send(f"/admin/accounts/{ben}/revoke-access")
    await send(f"/admin/accounts/{ben}/grant-access")
    await send(f"/admin/accounts/{ben}/suspend", reason="scraping")
    await send(f"/admin/accounts/{ben}/reinstate")
    await send(f"/admin/tokens/{laptop}/revoke", reason="lost")
    await send(f"/admin/tokens/{laptop}/reinstate")
    await send("/settings/password", password=PASSWORD, new_password=NEW)
    await send("/sign-out")
    domain, account, token = office.domain, f"/admin/accounts/{ben}", f"/admin/tokens/{laptop}"
    assert found == [
        (303, "/settings", "Your display name is changed."),
        (303, "/settings", "That browser is signed out."),
        (303, "/settings", "All other browsers are signed out."),
        (303, "/", "Your request was sent. The decision will be shown here."),
        (303, f"/admin/accounts/{office.admin}", f"ann@{domain} has API access."),
        (
            303,
            "/settings/developers",
            "The token \u2068own\u2069 is deleted. Requests with it are refused from now on.",
        ),
        (200, None),  # a page with a link for the new account
        (303, "/admin", f"The request by dora@{domain} is denied."),
        (303, account, f"ben@{domain} has no API access any more."),
        (200, None),  # a page with the tokens that work again
        (303, account, f"ben@{domain} is suspended."),
        (303, account, f"ben@{domain} is no longer suspended."),
        (303, token, f"Token {laptop} of ben@{domain} is revoked."),
        (303, token, f"Token {laptop} of ben@{domain} is valid."),
        (303, "/settings", "Your password is changed. All other browsers are signed out."),
        (303, "/", "You are signed out."),
    ]
