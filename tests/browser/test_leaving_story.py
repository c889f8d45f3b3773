"""A label in Chromium, without a terminal, from registration to a deleted account, with its artists handed over."""

from collections.abc import Callable
from typing import Literal

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, User
from tests.browser.test_story import approve
from tests.browser.visit import Visit
from tests.rights.world import PASSWORD, PASSWORD_HASH

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
LABEL, HEIR, ADMINISTRATOR = "label@label.test", "heir@label.test", "admin@label.test"
SHEET = b"Title,Artist,Album\nAir,Ann Example,Suite\nRag,Ann Example,Suite\nWaltz,Bob Example,Solo\n"


def sign_in(window: Visit, email: str) -> None:
    window.page.goto("/sign-in")
    window.page.get_by_label("E-mail").fill(email)
    window.page.get_by_label("Password").fill(PASSWORD)
    window.page.get_by_role("main").get_by_role("button", name="Sign in").click()
    window.page.get_by_role("button", name="Sign out").wait_for()


def register_and_ask_for_access(window: Visit) -> None:
    page = window.page
    page.goto("/register")
    page.get_by_label("Your name").fill("Label & Daughters")
    page.get_by_label("I have music").check()
    page.get_by_label("E-mail").fill(LABEL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    page.get_by_role("button", name="Sign out").wait_for()
    page.goto("/settings/access")
    page.get_by_label("What music do you have?").fill("Two artists")
    page.get_by_label("How much is it?").fill("3 tracks")
    page.get_by_label("Label or artist").fill("Label & Daughters")
    page.get_by_role("button", name="Request access").click()
    page.get_by_role("status").first.wait_for()


def upload(window: Visit) -> None:
    page = window.page
    page.goto("/import")
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "songs.csv", "mimeType": "text/csv", "buffer": SHEET}
    )
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Import the file").click()
    page.get_by_role("button", name="Import another file").wait_for()


def hand_over(window: Visit) -> None:
    """Find the way from the settings, and offer all artists."""
    page = window.page
    page.goto("/settings")
    page.get_by_role("button", name="Delete your account").click()
    assert page.get_by_text("You manage 2 artists.").count() == 1
    page.get_by_label("E-mail of the other account").fill(HEIR)
    page.get_by_role("button", name="Offer").click()
    page.get_by_text(f"The offer to {HEIR} waits for 14 days.").wait_for()


def accept(window: Visit) -> None:
    page = window.page
    page.goto("/")
    page.get_by_role("link", name="Look at the offer").click()
    assert page.get_by_role("heading", name="Label & Daughters offers you 2 artists").count() == 1
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Accept").click()
    page.get_by_text("You manage 2 artists of \u2068Label & Daughters\u2069 from now on.").wait_for()


def delete(window: Visit) -> None:
    page = window.page
    page.goto("/settings/delete")
    assert page.get_by_label("E-mail of the other account").count() == 0
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Delete my account").click()
    page.get_by_text("Your account is deleted.").wait_for()


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")])
def test_a_label_without_a_terminal_comes_and_leaves_and_its_artists_go_on(
    visit: Callable[..., Visit], store: Store, clock: MovableClock, width: int, theme: Literal["light", "dark"]
) -> None:
    def create() -> int:
        now = clock.now()
        users.create(ADMINISTRATOR, admin=True, password_hash=PASSWORD_HASH, now=now)
        return users.create(HEIR, api_access=True, password_hash=PASSWORD_HASH, now=now).id

    heir_id = store.write(create).result()
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
    label, administrator, heir = (visit(**options) for _ in range(3))
    register_and_ask_for_access(label)
    sign_in(administrator, ADMINISTRATOR)
    approve(administrator)
    upload(label)
    hand_over(label)
    sign_in(heir, HEIR)
    accept(heir)
    delete(label)
    heir.page.goto("/insights/artists")
    assert heir.page.get_by_role("link", name="Ann Example").count() > 0
    managers = store.read(lambda: {row.manager for row in Artist.select()}).result()
    emails = store.read(lambda: {row.email for row in User.select()}).result()
    assert (managers, emails) == ({heir_id}, {HEIR, ADMINISTRATOR})
    for window in (label, administrator, heir):
        assert window.errors == window.foreign == []
