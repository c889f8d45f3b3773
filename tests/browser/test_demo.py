"""Pages of other sites and a demo, in Chromium."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.support.demo import Demo, running_demo

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
SEND = "async ([url, options]) => { const found = await fetch(url, options); return [found.type, found.status]; }"
FAULT = """async ([url, token]) => {
    const found = await fetch(url, {headers: {Authorization: `Bearer ${token}`, "X-Demo-Fault": "503"}});
    return [found.status, found.headers.get("X-Demo-Injected")];
}"""


class EmptyPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    """Return the port of a site with an empty page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, site: int) -> Iterator[Demo]:
    """Return a demo that lists an origin of the site, and not the other one."""
    listed = {"MUSICSVC_SERVER__CORS_ORIGINS": f'["http://localhost:{site}"]'}
    folder: Path = tmp_path_factory.mktemp("demo")
    with running_demo(folder, **listed) as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


def test_a_page_of_another_site_resets_nothing(page: Page, demo: Demo, site: int) -> None:
    page.goto(f"http://127.0.0.1:{site}/")
    simple = {"method": "POST", "mode": "no-cors", "headers": {"Content-Type": "text/plain"}}
    demo.get("genres")
    assert page.evaluate(SEND, [f"{demo.root}/demo/reset", simple]) == ["opaque", 0]
    assert len(demo.get("/demo/requests").json["requests"]) == 1  # a reset would delete it


def test_a_page_of_a_listed_origin_injects_faults_and_resets(page: Page, demo: Demo, site: int) -> None:
    page.goto(f"http://localhost:{site}/")
    assert page.evaluate(FAULT, [f"{demo.root}/api/v1/albums", demo.token]) == [503, "header"]
    assert page.evaluate(SEND, [f"{demo.root}/demo/reset", {"method": "POST"}]) == ["cors", 200]
    assert demo.get("/demo/requests").json["requests"] == []
