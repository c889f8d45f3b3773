"""The pages of the table in Chromium: accessible, in both themes, wide and narrow, with nothing from elsewhere."""

import time
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from playwright.sync_api import Route

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import Access, Family
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token, User
from tests.browser.visit import Visit
from tests.rights.world import PASSWORD, PASSWORD_HASH
from tests.support import sample_pages
from tests.support.program import until
from tests.support.sample_pages import Sample

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

# The second one is the narrowest telephone. There, axe-core looks again at what depends on colours and widths.
WINDOWS: tuple[tuple[int, Literal["light", "dark"], Sequence[str]], ...] = (
    (1280, "light", ()),
    (320, "dark", ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")),
)
TABLET = 768  # upright
AT_200_PERCENT = 640  # a window of 1280
TELEPHONE = 360  # whose text is shown at twice its size, with all that can be unfolded
LARGE_TEXT = "document.documentElement.style.setProperty('font-size', '200%', 'important')"
UNFOLDED = "document.querySelectorAll('details').forEach(each => { each.open = true; })"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
MARGIN = "document.querySelector('main').firstElementChild.getBoundingClientRect().left"
REPEATED = "[...document.querySelectorAll('[id]')].map(each => each.id).filter((id, at, all) => all.indexOf(id) != at)"
LEFT_OUT = {"/insights/track/{id}/realtime", "/import/{id}/refused.csv"}  # a part of another page, a download
SHOWN = [each for each in ROUTES if each.family is Family.PAGE and each.method == "GET" and each.path not in LEFT_OUT]
# Of the pages of artists, albums and tracks that one function draws, the first, and those that differ by kind.
PAGES = [
    *{
        each.path if each.path.endswith(("/edit", "/track/{id}")) else getattr(each.handler, "func", each.handler): each
        for each in reversed(SHOWN)
        if not each.path.endswith("/csv")
    }.values()
]


@pytest.fixture
def demo_session(store: Store, clock: MovableClock) -> Sample:
    return store.write(lambda: sample_pages.load(clock.now())).result()


def check(window: Visit, path: str, axe: str, *, errors: Sequence[str] = ()) -> None:
    """Open the page in a wide light and a narrow dark window, and check it there. `errors`: on its console."""
    window.page.goto(path)
    assert (path, window.page.evaluate(REPEATED)) == (path, [])  # a label would lead to another field
    for width, theme, rules in WINDOWS:
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        until(lambda: window.page.evaluate(FITS))  # charts follow the width of the window
        assert (path, width, window.violations(axe, rules)) == (path, width, [])
    assert window.page.evaluate(MARGIN) > 0
    for width in (TABLET, AT_200_PERCENT):
        window.page.set_viewport_size({"width": width, "height": 900})
        until(lambda: window.page.evaluate(FITS))
        assert window.page.evaluate(MARGIN) > 0
    window.page.set_viewport_size({"width": TELEPHONE, "height": 900})
    window.page.evaluate(LARGE_TEXT)
    window.page.evaluate(UNFOLDED)
    until(lambda: window.page.evaluate(FITS))
    assert (path, window.errors, window.foreign) == (path, [*errors], [])


def test_pages_are_accessible_and_load_nothing_from_elsewhere(
    visit: Callable[..., Visit], demo_session: Sample, axe: str
) -> None:
    signed_out, signed_in = visit(), visit()
    signed_in.add_cookie("musicsvc", demo_session.session)
    for each in (signed_out, signed_in):
        each.page.add_init_script(axe)
    for route in PAGES:
        check(signed_out if route.access is Access.OPEN else signed_in, demo_session.path(route), axe)
    for path in ("/", "/insights/track/merge?merge=1&into=3"):
        check(signed_in, path, axe)
    missing = "error: Failed to load resource: the server responded with a status of 404 (Not Found)"
    check(signed_out, "/no/such/page", axe, errors=[missing])


def answer_late(route: Route) -> None:
    answer = route.fetch()
    time.sleep(2.1)  # longer than a double click
    route.fulfill(response=answer)


def test_a_double_click_creates_one_token_and_back_leads_to_the_form(
    visit: Callable[..., Visit], demo_session: Sample, store: Store
) -> None:
    window, count = visit(), lambda: store.read(Token.select().count).result()
    window.add_cookie("musicsvc", demo_session.session)
    store.write(lambda: User.update(password_hash=PASSWORD_HASH).execute()).result()
    window.page.goto("/settings/developers")
    before, form = count(), window.page.locator("form[action$='/tokens']")
    form.locator("[name=form_token]").evaluate("field => { field.value = '00'; }")
    form.locator("[name=name]").fill("laptop")
    form.locator("[name=password]").fill("wrong password")
    form.locator("button").click()
    window.page.locator(".alert:focus").get_by_text("The form has expired.").wait_for()  # far down the page
    form.locator("[name=password]").fill("wrong password")
    form.locator("button").click()
    form.get_by_text("The password is wrong.").wait_for()
    form.locator("[name=password]").fill(PASSWORD)
    window.page.route("**/tokens", answer_late)
    form.locator("button").evaluate("button => [0, 40, 2050].forEach(wait => setTimeout(() => button.click(), wait))")
    window.page.get_by_text("Your new token").wait_for()
    window.page.wait_for_timeout(300)
    assert count() == before + 1
    window.page.go_back()  # the refused form is not sent again
    assert window.page.url.endswith("/settings/developers")
    assert (form.count(), window.page.get_by_text("The password is wrong.").count()) == (1, 0)
