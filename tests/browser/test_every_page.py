"""Every page of the table in Chromium: accessible, in both themes, wide and narrow, with nothing from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest

from musicsvc.server.routes.route import Access, Family
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import sessions, users
from musicsvc.store.models import User
from musicsvc.store.seeding import fixtures, plays

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from musicsvc.clock import MovableClock
    from musicsvc.server.routes.route import Route
    from musicsvc.store.engine.store import Store
    from tests.browser.visit import Visit

pytestmark = pytest.mark.only_on("sqlite")

WINDOWS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (390, "dark"))
PAGES = [route for route in ROUTES if route.family is Family.PAGE and route.method == "GET"]
VALUES: dict[str, str] = {}


@pytest.fixture
def session(store: Store, clock: MovableClock) -> str:
    """Load the sample world, and return the cookie of its demo account, an administrator here."""

    def load() -> str:
        now = clock.now()
        fixtures.load(now=now)
        plays.load(now=now)
        demo = users.by_email(fixtures.DEMO_EMAIL)
        User.update(admin=True).where(User.id == demo.id).execute()
        return sessions.create(demo, address="127.0.0.1", agent="Tests/1.0", now=now)

    return store.write(load).result()


def path_of(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: VALUES[found[1]], route.path)


def check(window: Visit, path: str, axe: str, *, errors: Sequence[str] = ()) -> None:
    """Open the page in a wide light and a narrow dark window, and check it there. `errors`: on its console."""
    window.page.goto(path)
    for width, theme in WINDOWS:
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        wider = window.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (path, width, wider, window.violations(axe)) == (path, width, 0, [])
    assert (path, window.errors, window.foreign) == (path, [*errors], [])


def test_every_page_is_accessible_and_loads_nothing_from_elsewhere(
    visit: Callable[..., Visit], session: str, axe: str
) -> None:
    signed_out, signed_in = visit(), visit()
    signed_in.add_cookie("musicsvc", session)
    for route in PAGES:
        if route.access is Access.OPEN:
            check(signed_out, path_of(route), axe)
        check(signed_in, path_of(route), axe)
    missing = "error: Failed to load resource: the server responded with a status of 404 (Not Found)"
    check(signed_out, "/no/such/page", axe, errors=[missing])
