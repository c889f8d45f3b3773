"""A person in Chromium connects a player, sees what it heard, names a track, and dismisses the rest."""

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from musicsvc.clock import SECOND, MovableClock
from musicsvc.store.accounts import password_links, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Play, Track, TrackArtist
from tests.browser.test_every_page import WINDOWS
from tests.browser.test_story import PASSWORD, set_password_and_sign_in
from tests.browser.visit import Visit
from tests.conftest import NOW

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
HEARD = [("Morning", 4), ("Noon", 2), ("Evening", 3)]


@pytest.fixture
def link(store: Store, clock: MovableClock) -> str:
    """The link to set the password of an account with API access; there is one track."""

    def create() -> str:
        ann = users.create("ann@label.test", api_access=True, now=clock.now())
        track = Track.create(name="Twilight", duration=1000, created_at=NOW)
        TrackArtist.create(track=track, artist=Artist.create(name="Cleo Example", created_at=NOW), position=0)
        return password_links.create(ann, now=clock.now()).secret

    return store.write(create).result()


def send(root: str, token: str) -> Any:
    """Send listens as a player does."""
    titles = [title for title, number in HEARD for _ in range(number)]
    about = {"media_player": "Navidrome"}
    payload = [
        {
            "listened_at": NOW // SECOND - 60 * place,
            "track_metadata": {"artist_name": "Ann Example", "track_name": title, "additional_info": about},
        }
        for place, title in enumerate(titles)
    ]
    body = json.dumps({"listen_type": "import", "payload": payload}).encode()
    headers = {"Authorization": f"Token {token}"}
    request = Request(f"{root}/1/submit-listens", body, headers)  # noqa: S310 - the server of this test
    with urlopen(request) as answer:  # noqa: S310 - the same
        return json.load(answer)


def check(window: Visit, axe: str) -> None:
    """Check the page as it is in a wide light and a narrow dark window."""
    for width, theme, rules in WINDOWS:
        window.page.set_viewport_size({"width": width, "height": 900})
        window.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert (window.page.url, width, window.violations(axe, rules)) == (window.page.url, width, [])


def test_a_person_connects_a_player_and_sees_what_it_heard(
    visit: Callable[..., Visit], link: str, store: Store, root: str, axe: str
) -> None:
    window = visit(permissions=["clipboard-read", "clipboard-write"])
    set_password_and_sign_in(window, "ann@label.test", link)
    page = window.page
    page.goto("/settings/developers")
    page.get_by_role("link", name="Connect a player").click()
    page.get_by_label("Player").fill("Navidrome at home")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Show what to type").click()
    expect(page.get_by_label("Address of the server")).to_have_text(root)
    token = page.get_by_label("Token", exact=True).inner_text()
    page.get_by_role("button", name="Copy").nth(1).click()
    assert page.evaluate("navigator.clipboard.readText()") == token
    check(window, axe)
    page.get_by_role("button", name="I have copied it").click()
    expect(page.get_by_text("Nothing was heard yet.")).to_be_visible()
    assert token not in page.content()  # it is shown once
    assert send(root, token) == {"status": "ok"}
    page.reload()
    expect(page.get_by_text("Last heard just now from navidrome.")).to_be_visible()
    check(window, axe)
    page.get_by_role("link", name="Listens that match no track").click()
    expect(page.locator("ul.rows > li strong")).to_have_text(["Morning", "Evening", "Noon"])
    page.get_by_label("Track that Evening is").fill("Nothing of that name")
    page.get_by_role("button", name="Name the track of Evening").click()
    expect(page.locator("small.error")).to_be_visible()
    check(window, axe)
    page.get_by_label("Track that Evening is").fill("Twilight")
    page.get_by_role("button", name="Name the track of Evening").click()
    expect(page.get_by_role("status")).to_have_text("The listens are counted as plays of that track.")
    assert store.read(Play.select().count).result() == 3
    page.get_by_role("button", name="Dismiss Noon").click()
    expect(page.locator("ul.rows > li strong")).to_have_text(["Morning"])
    everything = page.get_by_role("button", name="Dismiss 1 title")
    expect(everything).to_be_hidden()  # a slip of the mouse dismisses nothing
    page.locator("summary", has_text="Dismiss all").click()
    check(window, axe)
    everything.click()
    expect(page.get_by_text("No listen waits for its track.")).to_be_visible()
    wrong = "error: Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
    assert (window.errors, window.foreign) == ([wrong], [])
