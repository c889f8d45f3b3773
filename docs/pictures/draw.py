"""Draw the pictures of the README from the fixtures: `python docs/pictures/draw.py`.

`report.png` is the first page of the PDF report, drawn by Typst. `api.png` is the page at `/docs` of a running demo,
`figures.png` its page of an artist's figures, both drawn by Chromium: the program that CHROMIUM names, or `chromium`
on the path; without one, the old pictures stay.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from musicsvc.clock import parse
from musicsvc.reports import pdf
from musicsvc.server.shapes import exports as shapes
from musicsvc.store import opening
from musicsvc.store.engine.sqlite import files
from musicsvc.store.insights import overview
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import window
from musicsvc.store.schema import schema
from musicsvc.store.seeding import fixtures, plays

FOLDER = Path(__file__).parent
NOW = "2026-03-01T12:00:00Z"
WIDTH = 900  # pixels
COLOURS, KMEANS = 128, 2  # without k-means, the green of a growth is lost
WIDE, TALL = 1280, 1010  # pixels of the browser


def save(name: str, png: bytes) -> None:
    """Save a picture, small enough for a README."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    height = round(picture.height * WIDTH / picture.width)
    small = picture.resize((WIDTH, height), Image.Resampling.LANCZOS).quantize(COLOURS, kmeans=KMEANS)
    small.save(FOLDER / name, optimize=True)
    sys.stdout.write(f"{name}: {(FOLDER / name).stat().st_size // 1000} kB\n")


def report() -> bytes:
    """Return the first page of the report on everything in the fixtures."""
    now = parse(NOW)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "musicsvc.db"
        files.create(database)
        url = f"sqlite:///{database}"
        schema.upgrade(url)
        with opening.connect(url) as store:
            store.write(lambda: fixtures.load(now=now)).result()
            store.write(lambda: plays.load(now=now)).result()
            content = store.read(
                lambda: shapes.printed(overview.build_for_print(Scope(), window("30-days", now), now), now)
            ).result()
    return pdf.pages(content, 2)[0]


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Run the demo; yield its root URL and the password of its account."""
    command = [sys.executable, "-m", "musicsvc", "serve", "--demo", "--port", "0", "--now", NOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603 - this program
        if running.stdout is None or running.stderr is None:
            raise RuntimeError("The demo has no output.")
        try:
            root = running.stdout.readline().split()[-1].removesuffix("/api/v1/albums")
            password = next(line.split()[-1] for line in running.stderr if "password" in line)
            yield root, password
        finally:
            running.terminate()


def pages(browser: str) -> tuple[bytes, bytes]:
    """Return screenshots of the albums in `/docs`, and of the figures of an artist."""
    with demo() as (root, password), sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = started.new_page(base_url=root, viewport={"width": WIDE, "height": TALL}, color_scheme="light")
        page.goto("/docs")
        page.get_by_text("/api/v1/albums").first.wait_for()
        albums = page.locator("#operations-tag-albums").bounding_box()
        if albums is None:
            raise RuntimeError("The page of the API does not show the albums.")
        api = page.screenshot(full_page=True, clip={"x": 0, "y": albums["y"], "width": WIDE, "height": TALL})
        page.goto("/sign-in")
        page.get_by_label("E-mail").fill(fixtures.DEMO_EMAIL)
        page.get_by_label("Password").fill(password)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        page.goto("/insights/artist/1?period=90-days")
        page.locator("canvas").first.wait_for()
        figures = page.screenshot()
        started.close()
    return api, figures


def main() -> None:
    """Draw all pictures."""
    save("report.png", report())
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")  # noqa: TID251 - a script, not the service
    if browser is None:
        sys.exit("api.png and figures.png stay as they are: no chromium on the path, and CHROMIUM names none.")
    api, figures = pages(browser)
    save("api.png", api)
    save("figures.png", figures)


if __name__ == "__main__":
    main()
