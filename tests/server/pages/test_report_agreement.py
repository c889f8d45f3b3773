"""Reports of the command line, pages and share links show the same growth or first plays, as workbooks do."""

import asyncio
import csv
import io
import json
from collections.abc import Callable, Coroutine
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from musicsvc.cli import main
from musicsvc.cli.session import Session
from musicsvc.clock import to_date
from tests.support import export_files
from tests.support.html_page import HtmlPage
from tests.support.pdf_text import printed
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

Command = Callable[..., Coroutine[Any, Any, bytes]]

pytestmark = on_shared_loop


@pytest.fixture
def command(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Return a function that runs `musicsvc` in this process and returns its output."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", world.shared.store.url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))

    async def run(*line: object) -> bytes:
        words, session = [*map(str, line)], Session(clock=world.shared.clock)
        await asyncio.to_thread(
            partial(main.command().main, words, prog_name="musicsvc", obj=session, standalone_mode=False)
        )
        return capsysbinary.readouterr().out

    return run


@pytest.mark.on_both
async def test_the_report_of_an_account_is_that_of_the_command_line(
    world: World, command: Command, tmp_path: Path
) -> None:
    client = world.shared.client.holding(world.made.token)
    path = "/api/v1/producer-intelligence/insights/export/report"
    answer = await client.post(path, {"include_charts": True, "include_listening": True})
    file = tmp_path / "report.json"
    await command("export", "report", "--user", "manager0@label.test", "-o", file)

    report = json.loads(file.read_bytes())["data"]
    del report["verification"]
    assert report == answer.json["data"]
    assert [each["id"] for each in report["releases"]["releases"]] == [*reversed(world.made.albums)]
    assert report["listening"]["new_listeners"] > 0


@pytest.mark.parametrize(("start", "recent"), [(3, True), (10, False)])
async def test_every_form_shows_growth_or_the_first_plays(
    world: World, command: Command, tmp_path: Path, start: int, recent: bool
) -> None:
    """Ten days from `start` days after the first play on, compared with the ten days before."""
    artist = world.made.artists[0]
    oldest = min(play.at for play in world.made.past.plays if play.track in world.made.past.tracks("artist", artist))
    day = to_date(oldest)
    first, last = (str(day + timedelta(days=start + each)) for each in (0, 9))
    text, chosen, query = (
        f"first plays {in_print(str(day))}",
        ["--from", first, "--to", last],
        f"from={first}&to={last}",
    )
    growth = (await world.api(f"artists/{artist}?{query}"))["growth"]
    assert growth["plays_change"] is not None

    page = await world.page(f"/insights/artist/{artist}?{query}")
    shared = await world.browser.post(f"/insights/artist/{artist}/share?{query}", {"days": "1"})
    (link,) = [each for each in HtmlPage(shared.body).links() if "/reports/" in each]
    shown = (await command("insights", "show", "artist", artist, *chosen)).decode()
    files = {form: tmp_path / f"of.{form}" for form in ("pdf", "xlsx")}
    for file in files.values():
        await command("export", "report", "--artist", artist, *chosen, "-o", file)
    texts = (page.text, (await world.page(link.removeprefix(world.browser.root))).text, shown)
    for found in (*texts, printed(files["pdf"].read_bytes())):
        assert (text in found, "vs previous" in found) == (recent, not recent), found
    assert shown.count(text) == (2 if recent else 0)  # of plays and of listeners

    book = openpyxl.load_workbook(files["xlsx"], read_only=True)
    summary = dict(book["summary"].iter_rows(min_row=2, values_only=True))
    for change in ("plays", "listeners"):
        assert summary[f"Growth of {change}"] == (text if recent else growth[f"{change}_change"])
    assert growth["first_play"] == str(day)
    assert summary["First play"] == datetime.combine(day, datetime.min.time())


async def test_the_rows_of_a_workbook_have_recent_first_plays_in_place_of_growth(
    world: World, command: Command, tmp_path: Path
) -> None:
    shown_in_place = 0
    for noun in ("track", "album", "artist"):
        own, other = tmp_path / f"{noun}.xlsx", tmp_path / f"{noun}.csv"
        for file in (own, other):
            await command("export", f"{noun}s", "--user", "manager0@label.test", "--period", "1-year", "-o", file)
        head, *rows = openpyxl.load_workbook(own)[f"{noun}s"].iter_rows(values_only=True)
        with other.open(encoding="utf-8", newline="") as text:
            columns, *lines = csv.reader(text)
        first_play = columns.index("first_play")
        assert [export_files.HEADINGS[heading] for heading in head] == columns
        if noun == "track":
            assert (rows.pop()[1], lines.pop()[1]) == ("(deleted tracks)", "(deleted tracks)")
        past = world.made.past
        for row, line in zip(rows, lines, strict=True):
            number = int(str(row[0]))
            plays = [play.at for play in past.plays if play.track in past.tracks(noun, number)]
            assert line[first_play] == (str(to_date(min(plays))) if plays else "")
            assert row[first_play] == (datetime.combine(to_date(min(plays)), datetime.min.time()) if plays else None)
            recent = past.first_plays(noun, number, "1-year", world.shared.clock.now())
            for change in ("plays_change", "listeners_change"):
                shown, figure = (cells[columns.index(change)] for cells in (row, line))
                assert shown == (
                    f"first plays {in_print(str(recent))}" if recent else float(figure) if figure else None
                )
            shown_in_place += recent is not None
    assert shown_in_place > 1
    form = {"period": "1-year", "type": "plays"}
    answer = await world.browser.post("/insights/export/xlsx", form)
    sheet = openpyxl.load_workbook(io.BytesIO(answer.body), read_only=True)["plays"]
    assert "First play" not in next(sheet.iter_rows(values_only=True))


async def test_every_form_counts_of_an_album_what_is_the_artists(
    world: World, command: Command, tmp_path: Path
) -> None:
    artist = world.made.artists[0]
    plays = (await world.api(f"artists/{artist}?period=1-year"))["top_albums"][0]["plays"]
    assert 0 < plays["of_artist"]["period"] < plays["period"] != plays["total"]
    wanted = [f"{plays['of_artist'][name]:,} of {plays[name]:,}" for name in ("period", "total")]

    page = await world.page(f"/insights/artist/{artist}?period=1-year")
    shared = await world.browser.post(f"/insights/artist/{artist}/share?period=1-year", {"days": "1"})
    (link,) = [each for each in HtmlPage(shared.body).links() if "/reports/" in each]
    shown = (await command("insights", "show", "artist", artist, "--period", "1-year")).decode()
    file = tmp_path / "of.pdf"
    await command("export", "report", "--artist", artist, "--period", "1-year", "-o", file)
    of_strangers = (await world.page(link.removeprefix(world.browser.root))).text
    for text in (page.text, of_strangers, shown, printed(file.read_bytes())):
        assert [each for each in wanted if each not in " ".join(text.split())] == []


def in_print(day: str) -> str:
    return f"{date.fromisoformat(day):%-d %b %Y}"
