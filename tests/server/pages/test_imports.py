"""Importing files in the browser: upload, columns, check, import, refused rows, undo."""

import asyncio
import re
from datetime import time
from pathlib import Path

from musicsvc.store.models import Track
from tests.support.page_client import text
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person
from tests.support.workbooks import write_xlsx

SHEET = b"""Title;Artist;Duration;Released;Genre
Air;Trio;3:45;2026-10-15;Jazz
Bolero;Trio;4:05;2026-10-16;Jazz
;Trio;1:00;2026-10-17;Jazz
Caprice;Solo;2:10;2026-10-18;
"""


async def ready(person: Person, path: str) -> str:
    """Return the page once nothing is under way any more."""
    async with asyncio.timeout(20):
        while b"hx-get" in (shown := await person.browser.get(path)).body:  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    return text(shown)


async def uploaded(person: Person, content: bytes = SHEET, name: str = "songs.csv", kind: str = "catalog") -> str:
    """Upload a file, wait until it is checked, and return the path of its page."""
    answer = await person.browser.post("/import", {"kind": kind, "file": (name, content)})
    assert answer.status == 303, text(answer)
    await ready(person, answer.headers["Location"])
    return answer.headers["Location"]


@on_shared_loop
async def test_a_sheet_is_checked_imported_and_undone(developer: Person) -> None:
    path = await uploaded(developer)
    shown = text(await developer.browser.get(path))
    assert "Import the file" in shown
    assert "4 rows read, 1 of them refused" in shown
    fields = ["track", "artist", "duration_ms", "release_date", "genre"]
    assert re.findall(r'value="(\w+)" selected', shown)[:5] == fields
    assert (await developer.browser.post(f"{path}/start")).status == 303
    shown = await ready(developer, path)
    assert "Imported" in shown
    assert "line 4: track is missing" in shown
    refused = await developer.browser.get(f"{path}/refused.csv")
    assert refused.body.decode().splitlines() == [
        '"line","reason","Title","Artist","Duration","Released","Genre"',
        '"4","track is missing","","Trio","1:00","2026-10-17","Jazz"',
    ]
    found = developer.shared.store.read(lambda: [track.name for track in Track.select().order_by(Track.id)]).result()
    assert found == ["Air", "Bolero", "Caprice"]
    (undo,) = set(re.findall(r"/imports/\d+/undo", shown))
    assert "3 tracks" in text(await developer.browser.get(undo))
    assert (await developer.browser.post(undo)).headers["Location"] == "/import"
    shown = await ready(developer, "/import")
    assert "Undone: 3 tracks, 2 artists, 1 genre." in shown
    assert developer.shared.store.read(lambda: Track.select().count()).result() == 0
    about = [(event.kind, event.actor) for event in developer.events() if event.kind.startswith("import.")]
    names = ("started", "done", "undo_started", "undone")
    assert about == [(f"import.{name}", "page") for name in names]


@on_shared_loop
async def test_a_workbook_is_checked_and_imported_like_a_sheet(developer: Person, tmp_path: Path) -> None:
    rows = [("Blue Label",), ("Title", "Artist", "Length", "UPC"), ("Air", "Trio", time(3, 45), 36000291452)]
    content = write_xlsx(tmp_path / "songs.xlsx", rows, Notes=[("a", "b")]).read_bytes()
    path = await uploaded(developer, content, "songs.xlsx")
    shown = text(await developer.browser.get(path))
    for told in ("1 row read, 0 of them refused", "Read the sheet Sheet, not Notes.", "m:ss, which the workbook holds"):
        assert told in shown
    assert (await developer.browser.post(f"{path}/start")).status == 303
    await ready(developer, path)
    found = developer.shared.store.read(lambda: [(track.name, track.duration) for track in Track.select()]).result()
    assert found == [("Air", 225_000)]
    broken = text(await developer.browser.get(await uploaded(developer, content[:-50], "songs.xlsx")))
    assert "songs.xlsx is damaged: it cannot be read as a zip file." in broken
