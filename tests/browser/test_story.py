"""A person in Chromium, from a link to the figures: the way that needs no terminal, with an administrator beside it."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import password_links, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, User
from musicsvc.store.seeding import fixtures, plays
from tests.browser.visit import Visit

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

CREATOR, ADMINISTRATOR = "creator@label.test", "admin@label.test"
PASSWORD = "seven preludes at dawn"
PERIODS = {"7 days": "7-days", "30 days": "30-days", "90 days": "90-days", "1 year": "1-year"}
FIRST_BYTES = {"CSV": b'"track_id"', "JSON": b"{", "Excel": b"PK", "PDF": b"%PDF-"}


@pytest.fixture
def links(store: Store, clock: MovableClock) -> dict[str, str]:
    """Load the sample data; return the links to set the passwords of its creator and of an administrator."""

    def load() -> dict[str, str]:
        now = clock.now()
        fixtures.load(now=now)
        plays.load(now=now)
        people = {email: users.create(email, now=now) for email in (CREATOR, ADMINISTRATOR)}
        User.update(admin=True).where(User.id == people[ADMINISTRATOR].id).execute()
        Artist.update(manager=people[CREATOR].id).execute()
        return {email: password_links.create(user, now=now).secret for email, user in people.items()}

    return store.write(load).result()


def set_password_and_sign_in(window: Visit, email: str, link: str) -> None:
    page = window.page
    page.goto(f"/password/{link}")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_role("button", name="Set the password").click()
    if page.url.endswith("/sign-in"):
        page.get_by_label("E-mail").fill(email)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


def ask_for_access(window: Visit) -> None:
    page = window.page
    page.goto("/")
    page.get_by_role("button", name="I write a program").click()
    page.get_by_role("button", name="Request access").press("Space")  # a link
    page.get_by_label("What are you going to build?").fill("A page of our figures")
    page.get_by_label("Expected requests").fill("5,000 a day")
    page.get_by_label("Organization").fill("Label & Daughters")
    page.get_by_role("button", name="Request access").click()
    page.get_by_text("Waiting").wait_for()


def approve(window: Visit) -> None:
    window.page.goto("/admin")
    assert window.page.get_by_text("Label & Daughters").count() == 1
    window.page.get_by_role("button", name="Approve").click()
    window.page.get_by_role("status").first.wait_for()


def create_token(window: Visit) -> str:
    """Create a token; return the line for curl that the page shows."""
    page = window.page
    page.goto("/settings/developers")
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Create token").click()
    line = page.get_by_label("Command to try the token").inner_text()
    page.goto("/settings/developers")  # a value is shown once
    assert page.get_by_text("laptop").count() > 0
    assert "msvc_" not in page.content()
    return line


def run(line: str) -> tuple[int, dict[str, Any]]:
    """Run the line for curl. Return the status and the body of the answer."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not on the path")
    done = subprocess.run(
        [*shlex.split(line), "-sS", "-w", "\n%{http_code}"], capture_output=True, text=True, check=True
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body)


def delete_token(window: Visit) -> None:
    page = window.page
    page.goto("/settings/developers")
    page.get_by_role("link", name="Delete laptop").click()
    page.get_by_role("button", name="Delete laptop").click()
    page.get_by_role("status").first.wait_for()


def look_at_figures(window: Visit) -> None:
    """Choose each period on the page of the artist; the figures grow with the period."""
    page, found = window.page, []
    page.goto("/insights")
    page.get_by_role("main").get_by_role("link", name="Johann Sebastian Bach").first.click()
    for label, name in PERIODS.items():
        page.get_by_label("Period").get_by_role("link", name=label).click()
        page.wait_for_url(f"**period={name}")
        page.locator("canvas").first.wait_for()
        found.append(int(page.locator(".figure").first.inner_text().replace(",", "")))
    assert found == sorted(set(found))


def download(window: Visit, name: str, folder: Path) -> bytes:
    with window.page.expect_download() as started:
        window.page.get_by_role("button", name=name, exact=True).click()
    file = folder / started.value.suggested_filename
    started.value.save_as(file)
    return file.read_bytes()


def share(window: Visit) -> str:
    """Create a share link and return it."""
    page = window.page
    page.get_by_role("button", name="Create a link").click()
    return page.locator("#share-link").inner_text()


@pytest.mark.parametrize(("width", "theme"), [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")])
def test_from_a_link_to_a_token_and_the_figures(
    visit: Callable[..., Visit],
    links: dict[str, str],
    tmp_path: Path,
    width: int,
    theme: Literal["light", "dark"],
) -> None:
    options = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
    creator, administrator, stranger = (visit(**options) for _ in range(3))
    set_password_and_sign_in(creator, CREATOR, links[CREATOR])
    set_password_and_sign_in(administrator, ADMINISTRATOR, links[ADMINISTRATOR])
    ask_for_access(creator)
    approve(administrator)
    line = create_token(creator)
    status, body = run(line)
    assert (status, body["user"]["display_name"]) == (200, "creator")
    delete_token(creator)
    assert run(line)[0] == 401
    look_at_figures(creator)
    for name, first in FIRST_BYTES.items():
        assert download(creator, name, tmp_path).lstrip(b"\xef\xbb\xbf").startswith(first), name
    shared = share(creator)
    stranger.page.goto(shared)
    assert stranger.page.get_by_role("heading", name="Johann Sebastian Bach").count() == 1
    creator.page.goto("/settings")
    creator.page.get_by_role("button", name="End the link").click()
    creator.page.get_by_role("status").first.wait_for()
    assert stranger.page.goto(shared).status == 404  # type: ignore[union-attr]  # a page was loaded
    assert creator.errors == administrator.errors == creator.foreign == administrator.foreign == []
