"""Draw the pictures of the README from the fixtures: `python docs/pictures/draw.py`.

`report.png` is the first page of the PDF report, drawn by Typst. `api.png` is the page at `/docs` of a running demo,
drawn by Chromium: the program that CHROMIUM names, or `chromium` on the path; without one, the old picture stays.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

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
WINDOW = (1280, 2000)  # pixels of the browser
TOP = 970  # pixels of introduction above the endpoints


def save(name: str, png: bytes, top: int = 0) -> None:
    """Save a picture, without the pixels above `top` and small enough for a README."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture = picture.crop((0, top, picture.width, picture.height))
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
                lambda: shapes.printed(overview.build(Scope(), window("30-days", now), for_print=True), now)
            ).result()
    return pdf.pages(content, 2)[0]


def api_page(browser: str) -> bytes:
    """Return a screenshot of `/docs`, from the list of endpoints on."""
    command = [sys.executable, "-m", "musicsvc", "serve", "--demo", "--port", "0", "--now", NOW]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo,  # noqa: S603 - this program
    ):
        if demo.stdout is None:
            raise RuntimeError("The demo has no output.")
        root = demo.stdout.readline().split()[-1].removesuffix("/api/v1/albums")
        picture = Path(folder) / "page.png"
        size = ",".join(map(str, WINDOW))
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=10000"]
        shot = [browser, *options, f"--window-size={size}", f"--screenshot={picture}", f"{root}/docs"]
        try:
            subprocess.run(shot, check=True, timeout=120, stderr=subprocess.DEVNULL)  # noqa: S603 - a browser that the user named
            return picture.read_bytes()
        finally:
            demo.terminate()


def main() -> None:
    """Draw both pictures."""
    save("report.png", report())
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")  # noqa: TID251 - a script, not the service
    if browser is None:
        sys.exit("api.png stays as it is: no chromium on the path, and CHROMIUM names none.")
    save("api.png", api_page(browser), TOP)


if __name__ == "__main__":
    main()
