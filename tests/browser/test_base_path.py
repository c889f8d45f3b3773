"""A person in Chromium below a base path: sign in, figures, a shared report, the page of the API."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser

from musicsvc.clock import MovableClock
from musicsvc.config import Server, Settings
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.seeding import fixtures
from tests.browser.visit import PATIENCE, Visit
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support import sample_pages
from tests.support.threaded_server import threaded_server

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


@pytest.fixture
def root(store: Store, clock: MovableClock) -> Iterator[str]:
    """Return the root URL of a server with a base path, the sample data, and a password for the demo account."""

    def load() -> None:
        sample_pages.load(clock.now())
        demo = users.by_email(fixtures.DEMO_EMAIL)
        users.set_password(demo, password_hash=PASSWORD_HASH, now=clock.now(), actor="fixtures")

    store.write(load).result()
    with threaded_server(store, clock, Settings(server=Server(base_path="/label/music"))) as server:
        yield server.root


def test_figures_reports_and_the_page_of_the_api_work_below_a_base_path(browser: Browser, root: str) -> None:
    with closing(Visit(browser.new_context(), root)) as visit:
        page = visit.page
        page.goto(f"{root}/insights/artist/1")  # leads to sign in, and back
        page.get_by_label("E-mail").fill(fixtures.DEMO_EMAIL)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{root}/insights/artist/1")
        page.locator("figure.chart canvas").first.wait_for()
        page.get_by_role("link", name="30 days").click()
        page.wait_for_url(re.compile(r"period=30-days"))
        page.get_by_role("button", name=re.compile("[Ss]hare|link")).first.click()
        link = page.locator("#share-link").inner_text().strip()
        assert link.startswith(f"{root}/reports/")
        page.goto(f"{root}/insights/tracks")
        page.get_by_role("searchbox").fill("Clavier")  # htmx replaces the table
        page.wait_for_url(re.compile(r"q=Clavier"))
        page.goto(f"{root}/docs")
        page.get_by_text("/api/v1/albums").first.wait_for(timeout=3 * PATIENCE)
        page.get_by_role("banner").get_by_role("link", name="Developers").click()
        page.wait_for_url(f"{root}/settings/developers")
        assert (visit.errors, visit.foreign, visit.failed) == ([], [], [])
    with closing(Visit(browser.new_context(), root)) as visit:
        visit.page.goto(link)
        visit.page.locator("figure.chart canvas").first.wait_for()
        assert (visit.errors, visit.foreign, visit.failed) == ([], [], [])
