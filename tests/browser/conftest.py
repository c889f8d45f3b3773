"""Chromium for the tests of the pages."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from musicsvc.clock import MovableClock
from musicsvc.config import Settings
from musicsvc.store.engine.store import Store
from tests.browser.visit import PATIENCE, Visit
from tests.support.threaded_server import threaded_server

# Two popups of the address bar, which nobody sees, of a Chromium with windows: they load pages of the browser's own for
# each context, most of its cost. The list takes the place of Playwright's, which follows.
DISABLED = (
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup,"
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "TcpPortRandomizationWin,OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch"
)
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="package")  # until it ends, its event loop counts as running: no other test could be asynchronous
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - longer than all tests of many a module

    # The first one draws no window around its pages, and takes two thirds of the CPU time.
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not on the path (tests/browser/install)")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        # In the shell, the language is otherwise that of the environment, where C is none that JavaScript knows.
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--accept-lang=en-US", f"--disable-features={DISABLED}"]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the source of axe-core."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (tests/browser/install, which needs npm)")
    return AXE.read_text("utf-8")


@pytest.fixture
def root(store: Store, clock: MovableClock, tmp_path: Path) -> Iterator[str]:
    """Return the root URL of a server on another thread."""
    with threaded_server(store, clock, Settings(data_dir=tmp_path)) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def visit(browser: Browser, root: str) -> Iterator[Callable[..., Visit]]:
    """Return a function that opens a window of a browser without cookies."""
    opened: list[Visit] = []

    def start(**options: object) -> Visit:
        opened.append(Visit(browser.new_context(base_url=root, **options), root))  # type: ignore[arg-type]  # options of a context
        return opened[-1]

    yield start
    for each in opened:
        each.close()
