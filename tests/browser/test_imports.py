"""Importing a file in Chromium: choosing it, correcting a column, the progress without a reload, and the undo."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks import queue
from musicsvc.store.models import Track
from musicsvc.store.security import sessions
from tests.browser.visit import Visit

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]


@pytest.fixture
def session(store: Store, clock: MovableClock) -> str:
    """The session of an account with API access."""

    def create() -> str:
        ann = users.create("ann@label.test", api_access=True, now=clock.now())
        return sessions.create(ann, address="127.0.0.1", agent="Tests/1.0", now=clock.now())

    return store.write(create).result()


def test_a_label_imports_a_sheet_and_undoes_it(
    visit: Callable[..., Visit], session: str, store: Store, tmp_path: Path
) -> None:
    rows = "".join(f"Etude {number};Trio;3:{number % 50 + 10}\n" for number in range(700))
    (tmp_path / "études.csv").write_text(f"Work;Artist;Duration\n{rows};Trio;1:00\n")
    window = visit()
    window.add_cookie("musicsvc", session)
    page = window.page
    page.goto("/")
    page.get_by_role("link", name="Import").click()
    page.get_by_label("File").set_input_files(tmp_path / "études.csv")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("alert")).to_have_text("No column has the track.")
    expect(page.get_by_text("Choose below which one has")).to_be_visible()
    page.get_by_label("Work is read as").select_option("Track")
    page.get_by_role("button", name="Read the file like this").click()
    page.get_by_role("button", name="Import the file").click()
    expect(page.get_by_role("heading", name="Imported")).to_be_visible()
    expect(page.get_by_text("701 rows read, 1 of them refused.")).to_be_visible()
    assert store.read(lambda: Track.select().count()).result() == 700
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the refused rows").click()
    assert download.value.path().read_text().splitlines()[1:] == ['"702","track is missing","","Trio","1:00"']
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Undo import").click()
    expect(page.get_by_text("Undone: 700 tracks, 1 artist.")).to_be_visible()
    assert store.read(lambda: Track.select().count()).result() == 0
    assert (window.errors, window.foreign) == ([], [])


def test_the_focus_stays_on_a_button_while_the_progress_is_refreshed(
    visit: Callable[..., Visit], session: str, store: Store, clock: MovableClock
) -> None:
    def create() -> int:  # no worker of this machine takes it
        return queue.create(users.by_email("ann@label.test").id, "catalog", "a.csv", "a.csv", "elsewhere", clock.now())

    path = f"/import/{store.write(create).result()}"
    window = visit()
    window.add_cookie("musicsvc", session)
    window.page.goto(path)
    window.page.get_by_role("button", name="Stop").focus()
    for _ in range(2):
        window.page.wait_for_event("response")
    window.page.wait_for_timeout(200)
    expect(window.page.get_by_role("button", name="Stop")).to_be_focused()
