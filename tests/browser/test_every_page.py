"""Every page of the table in Chromium: accessible, in both themes, wide and narrow, with nothing from elsewhere."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import pytest

from musicsvc.clock import MovableClock
from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.shapes import share_links
from musicsvc.server.shapes.envelope import Site
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, Track, User
from musicsvc.store.plays.periods import day_of, to_date, window
from musicsvc.store.plays.subjects import ARTIST, Subject
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures, plays
from tests.browser.visit import Visit
from tests.support import imports
from tests.support.program import until

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

WINDOWS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1280, "light"), (390, "dark"))
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
LEFT_OUT = {"/insights/track/{id}/realtime", "/import/{id}/refused.csv"}  # a part of another page, a download
SHOWN = [each for each in ROUTES if each.family is Family.PAGE and each.method == "GET" and each.path not in LEFT_OUT]
PAGES = [each for each in SHOWN if not each.path.endswith("/csv")]


class Sample(NamedTuple):
    """The demo account's session, and the values of parameters in paths: of the sample data, or by the whole path."""

    session: str
    values: Mapping[str, str]

    def path(self, route: Route) -> str:
        name = self.values.get(route.path, self.values["id"])
        return re.sub(r"\{\w+\}", name, route.path)


@pytest.fixture
def demo_session(store: Store, clock: MovableClock) -> Sample:
    """Load the sample data. The demo account is an administrator here.

    One track and its album, which came out lately, have the longest names possible, without a space.
    """

    def load() -> Sample:
        now = clock.now()
        fixtures.load(now=now)
        plays.load(now=now)
        released = to_date(day_of(now) - 9).isoformat()
        Album.update(name="W" * 255, release_date=released).where(Album.id == 1).execute()
        Track.update(name="M" * 255).where(Track.id == 1).execute()
        demo = users.by_email(fixtures.DEMO_EMAIL)
        User.update(admin=True).where(User.id == demo.id).execute()
        report = report_links.create([Subject(ARTIST, 1)], window("30-days", now), user_id=demo.id, now=now)
        other = users.create("other@label.test", now=now)
        api_access.request(other.email, "Charts", "100 a day", "Label & Daughters", now=now)
        tokens.revoke(1, "abuse: 100 requests refused", now=now, actor="abuse")
        run = runs.start("catalog", "W" * 255, demo.id, {"tracks": Counts(new=28_356)}, now, "page")
        runs.end_run(run, "import.done", now, "page")
        return Sample(
            sessions.create(users.get(demo.id), address="127.0.0.1", agent="Tests/1.0", now=now),
            {
                "id": "1",
                "/import/{id}": str(imports.checked_file(demo.id, "W" * 255, now)),
                "/imports/{id}/undo": str(run),
                "/password/{link}": password_links.create(other, now=now).secret,
                "/reports/{link}": share_links.address(report.id, report.created_at, Site("")).rpartition("/")[2],
            },
        )

    return store.write(load).result()


def check(window: Visit, path: str, axe: str, *, errors: Sequence[str] = ()) -> None:
    """Open the page in a wide light and a narrow dark window, and check it there. `errors`: on its console."""
    window.page.goto(path)
    for width, theme in WINDOWS:
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        until(lambda: window.page.evaluate(FITS))  # charts follow the width of the window
        assert (path, width, window.violations(axe)) == (path, width, [])
    assert (path, window.errors, window.foreign) == (path, [*errors], [])


def test_every_page_is_accessible_and_loads_nothing_from_elsewhere(
    visit: Callable[..., Visit], demo_session: Sample, axe: str
) -> None:
    signed_out, signed_in = visit(), visit()
    signed_in.add_cookie("musicsvc", demo_session.session)
    for route in PAGES:
        check(signed_out if route.access is Access.OPEN else signed_in, demo_session.path(route), axe)
    for path in ("/", "/insights/track/merge?merge=1&into=3"):
        check(signed_in, path, axe)
    missing = "error: Failed to load resource: the server responded with a status of 404 (Not Found)"
    check(signed_out, "/no/such/page", axe, errors=[missing])
