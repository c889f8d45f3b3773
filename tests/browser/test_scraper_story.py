"""An administrator in Chromium, who finds, revokes and reinstates last night's scraper from the first page."""

from collections.abc import Callable
from typing import Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from musicsvc.clock import HOUR, MovableClock
from musicsvc.store.accounts import password_links, tokens, users
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import last_id
from musicsvc.store.engine.store import Store
from musicsvc.store.models import User
from musicsvc.store.seeding import fixtures
from tests.browser.test_story import set_password_and_sign_in
from tests.browser.visit import Visit
from tests.support.program import until

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

ADMINISTRATOR = "admin@label.test"
ALLOWED, CALLS, OTHERS_CALLS = 300, 311, 17  # 300 a minute are allowed


@pytest.fixture
def holders(store: Store, clock: MovableClock) -> dict[str, str]:
    """Load the sample data; return the tokens of a scraper and of somebody else, and an administrator's link."""

    def load() -> dict[str, str]:
        now = clock.now()
        fixtures.load(now=now)
        boss = users.create(ADMINISTRATOR, now=now)
        User.update(admin=True).where(User.id == boss.id).execute()
        link = password_links.create(boss, now=now).secret
        names = {"crawler": "eve@label.test", "laptop": "ann@label.test"}
        people = {name: users.create(email, api_access=True, now=now) for name, email in names.items()}
        return {name: tokens.create(user, name, now=now)[1] for name, user in people.items()} | {"link": link}

    return store.write(load).result()


def call(root: str, token: str, path: str, address: str) -> int:
    """Send a request as through a proxy, and return the status."""
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": address, "X-Forwarded-Proto": "https"}
    try:
        with urlopen(Request(f"{root}/api/v1/{path}", headers=headers)) as answer:  # noqa: S310 - the test's server
            return int(answer.status)
    except HTTPError as error:
        return error.code


def row(window: Visit, name: str) -> list[str]:
    """Return the cells of the row of a token in the table of callers."""
    found = window.page.locator("table.callers tr").filter(has=window.page.get_by_role("link", name=name, exact=True))
    return [" ".join(text.split()) for text in found.locator("th, td").all_inner_texts()]


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")])
def test_last_nights_scraper_is_found_revoked_and_reinstated_from_the_first_page(
    visit: Callable[..., Visit],
    root: str,
    store: Store,
    clock: MovableClock,
    holders: dict[str, str],
    axe: str,
    width: int,
    theme: Literal["light", "dark"],
) -> None:
    scraper, address = holders["crawler"], "203.0.113.9"
    statuses = [call(root, scraper, f"tracks/{n % 40 + 1}", address) for n in range(CALLS)]
    assert statuses.count(429) == CALLS - ALLOWED
    assert {call(root, holders["laptop"], "albums", "198.51.100.7") for _ in range(OTHERS_CALLS)} == {200}
    with activity_log.build(store.url) as log:
        until(lambda: log.open_existing() and log.read(last_id).result() == CALLS + OTHERS_CALLS)
    clock.advance(9 * HOUR)

    window = visit(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = window.page
    set_password_and_sign_in(window, ADMINISTRATOR, holders["link"])
    page.get_by_role("link", name="Administration").first.click()

    # The first page: the scraper is near a limit, the other token is not.
    assert page.get_by_role("heading", name="Near a limit").count() == 1
    assert page.get_by_role("link", name="laptop").count() == 0
    cells = row(window, "crawler")
    assert cells[0] == "crawler of eve@label.test"
    assert cells[1] == str(CALLS)
    unknown = statuses.count(404)
    assert cells[2] == f"{unknown + CALLS - ALLOWED} {unknown} × 404, {CALLS - ALLOWED} × 429"
    assert "11 calls beyond a limit" in cells[-1]
    assert window.violations(axe) == []
    page.get_by_role("link", name="Who called most").click()
    assert row(window, "laptop")[1] == str(OTHERS_CALLS)

    # A click leads to its calls, and from there to the token.
    page.get_by_role("link", name=str(CALLS), exact=True).click()
    assert page.locator("tbody tr").count() >= 50
    assert page.locator("tbody tr").filter(has_text=address).count() == page.locator("tbody tr").count()
    assert page.get_by_text("198.51.100.7").count() == 0
    page.locator('table a[href^="/admin/tokens/"]').first.click()
    assert page.get_by_role("heading", name="Token crawler").count() == 1
    page.get_by_label("Reason").fill("Copied the catalog at night")
    page.get_by_role("button", name="Revoke the token").click()
    page.get_by_role("status").first.wait_for()
    assert call(root, scraper, "tracks/1", address) == 401

    # It was a customer's import: back to the first page, and the token works again.
    page.goto("/admin")
    assert row(window, "crawler")[0] == "crawler of eve@label.test revoked"
    page.get_by_role("link", name="crawler", exact=True).click()
    page.get_by_role("button", name="Reinstate the token").click()
    page.get_by_role("status").first.wait_for()
    assert call(root, scraper, "tracks/1", address) in {200, 429}  # its minute may not be over
    assert window.errors == window.foreign == window.failed == []
