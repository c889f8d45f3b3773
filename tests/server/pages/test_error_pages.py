"""Error pages keep the navigation and the form, sign-in leads to the work to do, and programs get JSON."""

from functools import partial

import pytest

from musicsvc.server.request.rendering import LINKS, PAGES
from musicsvc.server.request.sessions import FILES
from musicsvc.server.routes.route import SAFE, Access, Family
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import api_access, password_links, users
from musicsvc.store.models import Artist
from tests.rights.world import PASSWORD
from tests.support.html_page import HtmlPage
from tests.support.office import Office
from tests.support.page_client import PageClient, add_account, add_session, page_client, text
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop
MISSING = ("/nothing", "/admin/accounts/999999", "/insights/track/999999", "/reports/x", "/docs/x", "/static/x.css")


async def test_error_pages_keep_the_navigation_of_the_account(office: Office) -> None:
    paths = [path for access, path, _ in LINKS if access is not Access.DEVELOPER]
    for missing in MISSING:
        answer = await office.browser.get(missing)
        page = HtmlPage(answer.body)
        assert (answer.status, [each for each in page.links() if each in paths]) == (404, paths), missing
        assert "Sign out" in page.text
    stranger = add_account(office.shared, f"zoe@{office.domain}")
    office.browser.cookies = {"musicsvc": add_session(office.shared, stranger)}
    hidden = HtmlPage((await office.browser.get("/admin")).body)  # not an administrator
    assert [each for each in hidden.links() if each in paths] == ["/insights", "/settings/developers", "/settings"]

    token = text(await office.browser.get("/nothing")).split('name="form_token" value="')[1].split('"')[0]
    assert (await office.browser.post("/sign-out", {"form_token": token})).status == 303
    assert "Sign out" not in text(await office.browser.get("/nothing"))


async def test_an_error_page_signed_out_leads_to_sign_in_and_sets_no_cookie(shared: Shared) -> None:
    async with page_client(shared.client.root) as browser:
        for missing in ("/nothing", "/reports/x"):
            answer = await browser.get(missing)
            assert (answer.status, "Go back" in text(answer)) == (404, False)
            assert "/sign-in" in HtmlPage(answer.body).links()
            assert browser.cookies == {}


async def test_a_form_that_has_expired_is_shown_again_with_what_was_typed(office: Office) -> None:
    typed = {"use_case": "A player & more", "volume": "77 a day", "organization": "Engines", "form_token": "00" * 48}
    answer = await office.browser.post("/settings/access", typed)
    page = HtmlPage(answer.body)
    assert answer.status == 403
    assert "The form has expired." in page.text
    values = {found.get("name"): found.get("value") for tag, found in page.attributes if tag == "input"}
    assert (values["volume"], values["organization"]) == ("77 a day", "Engines")
    assert "A player & more" in page.text
    typed["form_token"] = values["form_token"] or ""
    assert (await office.browser.post("/settings/access", typed)).status == 303

    hidden = await office.browser.post("/settings/password", {"password": PASSWORD, "form_token": "00" * 48})
    assert hidden.status == 403
    assert PASSWORD not in text(hidden)
    part = {"HX-Request": "true", "HX-Current-URL": f"{office.browser.root}/insights/track/7?by=day"}
    session, office.browser.cookies = office.browser.cookies, {}
    answer = await office.browser.get("/insights/track/7/realtime", **part)
    assert answer.headers["HX-Redirect"] == "/sign-in?next=/insights/track/7%3Fby%3Dday"
    refused = await office.browser.post(
        "/sign-in", {"email": "ann@label.test", "password": "x", "form_token": "00" * 48}
    )
    assert (refused.status, "sent no cookie" in text(refused)) == (403, True)
    assert HtmlPage(refused.body).forms["/sign-in"]["email"] == "ann@label.test"
    answer = await office.browser.post("/insights/track/7/share?period=7-days", {"days": "9"})
    assert answer.headers["Location"] == "/sign-in?next=/insights/track/7%3Fperiod%3D7-days"
    office.browser.cookies = session
    foreign = await office.browser.post("/settings/name", {"display_name": "Evil"}, Origin="https://evil.test")
    assert (foreign.status, "Evil" in text(foreign)) == (403, False)


async def test_an_error_of_a_form_leads_back_to_the_page_that_sent_it(office: Office) -> None:
    root, gone = office.browser.root, "/settings/share-links/999999/end"
    for referer, back in (
        (f"{root}/settings?x=1", ["/settings?x=1"]),
        (f"{root}{gone}", []),  # a form that was shown again, at an address that is no page
        (f"{root}//evil.test/", []),
        ("https://evil.test/settings", []),
        ("", []),
    ):
        answer = await office.browser.post(gone, Referer=referer)
        page = HtmlPage(answer.body)
        assert (answer.status, "Go back" in page.text) == (404, bool(back)), referer
        assert "No longer there This share link has ended already" in page.text
        assert set(back) <= set(page.links())
    assert "Page not found" in text(await office.browser.post("/settings/nothing"))
    later = HtmlPage((await office.browser.get("/settings/developers/tokens")).body)  # where a token was shown
    assert "This address takes a form, and shows no page. Go back" in later.text
    assert later.links().count("/settings/developers") == 2  # the other one is in the navigation
    lost = await office.browser.get("/admin/accounts/999999", Referer=f"{root}/admin/accounts/999999/edit")
    assert (lost.status, "Go back" in text(lost)) == (404, False)  # to a page of the same, or of its form


@pytest.mark.only_on("sqlite")
async def test_a_form_of_the_signed_out_over_its_limit_leads_back(browser: PageClient) -> None:
    browser.move(9)
    statuses = [(await browser.post("/register", {"email": ""})).status for _ in range(11)]
    assert statuses == [422] * 10 + [429]
    refused = await browser.post("/register", {"email": ""})
    assert "10 registrations an hour for your address is reached. Try again in 60 minutes." in text(refused)
    assert 'href="/register">Go back to the page' in text(refused)


@pytest.mark.parametrize(
    ("path", "sent", "reason"),
    [
        ("/settings/purpose", {"purpose": "x"}, "Purpose: Must be one of: 'music' or 'program'."),
        ("/admin/artists/{artist}/assign", {"email": "x@a.test", "was": "x"}, "Was: Must be a whole number"),
        ("/insights/compare/share", {"days": "0"}, "Days: Must be at least 1."),
    ],
)
async def test_an_error_of_a_field_that_is_not_shown_stands_above_the_page(
    office: Office, path: str, sent: dict[str, str], reason: str
) -> None:
    artist = office.do(lambda: Artist.create(name="Trio", manager=office.admin, created_at=1).id)
    shown = text(await office.act(path.format(artist=artist), 422, **sent))
    alerts = shown.count("Please correct the marked field.")
    assert (shown.count(reason), alerts) == (1, shown.count('aria-invalid="true"'))


@pytest.mark.slow
async def test_a_program_that_is_signed_out_gets_401_on_each_page_that_needs_a_session(shared: Shared) -> None:
    async with page_client(shared.client.root) as browser:
        wanted = [route for route in ROUTES if route.family is Family.PAGE and route.access is not Access.OPEN]
        assert len(wanted) > 30
        for route in wanted:
            path = route.path.format_map(dict.fromkeys(route.parameters, "1"))
            send = browser.get if route.method in SAFE else browser.post
            answer = await send(path, Accept="application/json")
            assert (answer.status, answer.json) == (401, {"message": "Unauthenticated."}), path
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert (await send(path, Accept="application/json, text/html")).status == 303, path
            assert (await send(path, Accept="*/*")).status == (401 if path.endswith(FILES) else 303), path
        assert (await browser.get("/", Accept="application/json")).status == 200
        for path in ("/api/none", "/1/none", "/1/validate-token", "/mcp"):  # Java asks for HTML unless told otherwise
            answer = await browser.get(path, Accept="text/html, */*; q=.2")
            assert answer.headers["Content-Type"].startswith("application/json"), path
    assert "/settings" in PAGES


@pytest.mark.slow
@pytest.mark.parametrize("by_link", [False, True])
async def test_sign_in_leads_to_the_work_of_the_account(office: Office, by_link: bool) -> None:
    def deny_all() -> None:
        for asked in api_access.requests(pending=True, limit=1_000):
            api_access.deny(asked.id, "No", now=office.shared.clock.now())

    async def landing(name: str) -> str | None:
        email = f"{name}@{office.domain}"
        async with page_client(office.shared.client.root) as browser:
            if by_link:
                link = office.do(lambda: password_links.create(users.by_email(email), now=office.shared.clock.now()))
                answer = await browser.post(f"/password/{link.secret}", {"new_password": PASSWORD})
            else:
                answer = await browser.sign_in(email)
                assert (await browser.get("/sign-in")).headers["Location"] == answer.headers["Location"]
                chosen = await browser.sign_in(email, path="/sign-in?next=/settings")
                assert chosen.headers["Location"] == "/settings"
                home = await browser.sign_in(email, path="/sign-in?next=/")
                assert home.headers["Location"] == "/"
            return str(answer.headers["Location"])

    office.do(deny_all)
    for name, admin, manages in (("a", True, True), ("b", True, False), ("c", False, True), ("d", False, False)):
        account = office.account(name, admin=admin)
        if manages:
            office.do(partial(Artist.create, name="Anna", manager=account, created_at=1))
        assert await landing(name) == ("/insights" if manages else "/")
    office.request()
    assert [await landing(name) for name in "abcd"] == ["/admin", "/admin", "/insights", "/"]
    office.do(deny_all)
    assert [await landing(name) for name in "abcd"] == ["/insights", "/", "/insights", "/"]
