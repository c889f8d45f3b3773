"""Listening, hours, milestones and releases of an artist are the same in the API, page, report and command line."""

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
from musicsvc.store.models import Album
from tests.support.figures_world import EMPTY, World
from tests.support.html_page import HtmlPage
from tests.support.pdf_text import printed
from tests.support.shared_server import on_shared_loop

Command = Callable[..., Coroutine[Any, Any, bytes]]

pytestmark = on_shared_loop
PERIODS = {
    "30-days": (["--period", "30-days"], "period=30-days"),
    "custom": (["--from", "2025-12-20", "--to", "2026-02-15"], "from=2025-12-20&to=2026-02-15"),
}
DAYS = 12  # since the release; one album has fewer
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


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


async def expected(world: World, query: str) -> dict[str, Any]:
    """Return the figures of the first artist as the endpoints give them."""
    artist, (first, second) = world.made.artists[0], world.made.albums
    data = await world.api(f"artists/{artist}?{query}")
    tops = [("artist", artist, "Artist 0")] if data["plays"]["period"] else []
    for kind in ("album", "track"):
        tops += [(kind, row["id"], row["name"]) for row in data[f"top_{kind}s"] if row["plays"]["period"]]
    found = {name: await world.api(f"artists/{artist}/{name}?{query}") for name in ("listening", "hours")}
    for answer in found.values():
        del answer["period"]
    return found | {
        "milestones": [
            {"kind": kind, "id": each, "name": name} | await world.api(f"{kind}s/{each}/milestones")
            for kind, each, name in tops
        ],
        "releases": await world.api(f"albums/{first}/release?against={second}&days={DAYS}"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("period", PERIODS)
async def test_every_figure_of_listening_is_the_same_everywhere(
    world: World, command: Command, tmp_path: Path, period: str
) -> None:
    chosen, query = PERIODS[period]
    artist, (first, second) = world.made.artists[0], world.made.albums
    found = await expected(world, query)
    assert len(found["milestones"]) > 3
    assert sum(len(each["plays"]) for each in found["milestones"]) > 3
    assert [len(each["points"]) for each in found["releases"]["releases"]] == [DAYS, 10]

    files = {form: tmp_path / f"report.{form}" for form in ("json", "xlsx", "csv", "pdf")}
    releases = ["--release", first, "--release", second, "--release-days", DAYS]
    for file in files.values():
        await command("export", "report", "--artist", artist, *chosen, *releases, "-o", file)
    report = json.loads(files["json"].read_bytes())["data"]
    assert {name: report[name] for name in found} == found
    assert in_workbook(files["xlsx"]) == as_sheets(found)
    assert as_lines(found) <= in_csv(files["csv"])
    check_print(files["pdf"], found)

    shown = json.loads(await command("insights", "show", "artist", artist, *chosen, "--json"))
    assert {name: shown[name].items() >= found[name].items() for name in ("listening", "hours")} == {
        "listening": True,
        "hours": True,
    }
    of_artist = found["milestones"][0]
    assert shown["milestones"] == {name: of_artist[name] for name in ("plays", "best_day")}
    compared = await command("insights", "release", first, "--against", second, "--days", DAYS, "--json")
    assert json.loads(compared) == found["releases"]

    page = await world.page(f"/insights/artist/{artist}?{query}")
    assert page.figures["new_listeners"] == f"{found['listening']['new_listeners']:,}"
    assert page.figures["skips"] == f"{found['listening']['skips']:,}"
    assert page.figures["completion.median"] == f"{found['listening']['completion']['median']:,}"
    assert [row[1:] for row in page.table("UTC")] == [[f"{n:,}" for n in row] for row in found["hours"]["hours"]]
    for each in of_artist["plays"]:
        assert f"{each['count']:,} plays on" in page.text


async def test_an_album_without_a_release_date_is_compared_without_days(
    world: World, command: Command, tmp_path: Path
) -> None:
    artist, first = world.made.artists[0], world.made.albums[0]
    undated = world.shared.store.read(lambda: int(Album.get(Album.name == "Album 3").id)).result()
    file = tmp_path / "report.pdf"
    await command("export", "report", "--artist", artist, "--release", first, "--release", undated, "-o", file)
    text = printed(file.read_bytes())
    assert "Album 0 10 February 2026" in text
    assert "Album 3 no release date" in text


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
    assert (summary["growth.plays_change"], summary["first_play"]) == (growth["plays_change"], str(day))


async def test_the_rows_of_a_workbook_have_growth_beside_the_first_play(
    world: World, command: Command, tmp_path: Path
) -> None:
    for noun in ("track", "album", "artist"):
        own, other = tmp_path / f"{noun}.xlsx", tmp_path / f"{noun}.csv"
        for file in (own, other):
            await command("export", f"{noun}s", "--user", "manager0@label.test", "--period", "90-days", "-o", file)
        head, *rows = openpyxl.load_workbook(own)[f"{noun}s"].iter_rows(values_only=True)
        with other.open(encoding="utf-8", newline="") as text:
            columns, *lines = csv.reader(text)
        assert [*head] == [*columns, "first_play"]
        growth = columns.index("plays_change")
        assert [row[growth] for row in rows] == [float(line[growth]) if line[growth] else None for line in lines]
        past = world.made.past
        for row in rows:
            plays = [play.at for play in past.plays if play.track in past.tracks(noun, int(str(row[0])))]
            assert row[-1] == (datetime.combine(to_date(min(plays)), datetime.min.time()) if plays else None)
    form = {"period": "90-days", "type": "plays"}
    answer = await world.browser.post("/insights/export/xlsx", form)
    sheet = openpyxl.load_workbook(io.BytesIO(answer.body), read_only=True)["plays"]
    assert "first_play" not in next(sheet.iter_rows(values_only=True))


def in_workbook(file: Path) -> dict[str, list[Any]]:
    book = openpyxl.load_workbook(file, read_only=True)
    names = ("listening", "hours", "milestones", "best days", "releases")
    return {name: [[*line] for line in book[name].iter_rows(min_row=2, values_only=True)] for name in names}


def as_sheets(found: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the rows of the workbook's sheets."""
    heard = found["listening"]
    share = {f"completion.{name}": value for name, value in heard["completion"].items()}
    subjects = [([each["kind"], each["id"], each["name"]], each) for each in found["milestones"]]
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return {
        "listening": [
            [name, value]
            for key, part in heard.items()
            for name, value in (share.items() if key == "completion" else [(key, part)])
        ],
        "hours": [[day, *plays] for day, plays in zip(days, found["hours"]["hours"], strict=True)],
        "milestones": [
            [*of, reached["count"], in_cell(reached["at"])] for of, each in subjects for reached in each["plays"]
        ],
        "best days": [
            [*of, datetime.fromisoformat(each["best_day"]["date"]), each["best_day"]["plays"]] for of, each in subjects
        ],
        "releases": [
            [each["id"], each["name"], datetime.fromisoformat(each["release_date"]), *point.values()]
            for each in found["releases"]["releases"]
            for point in each["points"]
        ],
    }


def in_cell(at: str) -> datetime:
    """Return a time as a cell has it, to the millisecond."""
    exact = datetime.fromisoformat(at).replace(tzinfo=None)
    return exact.replace(microsecond=round(exact.microsecond, -3))


def in_csv(file: Path) -> set[tuple[str, ...]]:
    with file.open(encoding="utf-8", newline="") as text:
        return {tuple(line) for line in csv.reader(text)}


def as_lines(found: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return the lines of the CSV file."""
    lines: set[tuple[str, ...]]
    lines = {("listening", "", name, str(value)) for name, value in found["listening"].items() if name != "completion"}
    lines |= {("listening", "", f"completion.{name}", str(of)) for name, of in found["listening"]["completion"].items()}
    for day, plays in zip(("Monday", "Sunday"), (found["hours"]["hours"][each] for each in (0, 6)), strict=True):
        lines |= {("hours", day, f"{hour:02}:00", str(count)) for hour, count in enumerate(plays)}
    for each in found["milestones"]:
        key = f"{each['kind']} {each['id']}"
        lines |= {("milestones", key, f"plays.{reached['count']}", reached["at"]) for reached in each["plays"]}
        lines |= {("milestones", key, f"best_day.{name}", str(value)) for name, value in each["best_day"].items()}
    for place, each in enumerate(found["releases"]["releases"], 1):
        for point in each["points"]:
            key = f"{place:02} day {point['day']:03}"
            lines |= {("releases", key, name, str(value)) for name, value in point.items()}
    return lines


def check_print(file: Path, found: dict[str, Any]) -> None:
    """Compare the text of the PDF."""
    text = printed(file.read_bytes())
    heard = found["listening"]
    share = heard["completion"]
    for words in (
        f"New listeners {heard['new_listeners']:,} ",
        f"Returning listeners {heard['returning_listeners']:,} ",
        f"Plays per listener {heard['plays_per_listener']:,} ",
        f"Heard of the track {share['mean']:,} % on average, median {share['median']:,} % ",
        f"Skips {heard['skips']:,} of {heard['plays_with_duration']:,} with a duration",
    ):
        assert words in text
    for day, plays in zip(WEEK, found["hours"]["hours"], strict=True):
        assert f"{day} {' '.join(map(str, plays))} {sum(plays):,}" in text
    numbers = sorted({reached["count"] for each in found["milestones"] for reached in each["plays"]})
    for each in found["milestones"]:
        reached = {of["count"]: in_print(of["at"][:10]) for of in each["plays"]}
        days = " ".join(reached.get(number, EMPTY) for number in numbers)
        best = each["best_day"]
        assert f"{each['name']} {each['kind']} {days} {in_print(best['date'])}: {best['plays']:,}" in text
    for each in found["releases"]["releases"]:
        assert f"{each['name']} {date.fromisoformat(each['release_date']):%-d %B %Y}" in text
    for number in range(DAYS):
        cells = [
            f"{each['points'][number]['plays']:,} {each['points'][number]['listeners']:,}"
            if number < len(each["points"])
            else f"{EMPTY} {EMPTY}"
            for each in found["releases"]["releases"]
        ]
        assert f" {number} {' '.join(cells)} " in text


def in_print(day: str) -> str:
    return f"{date.fromisoformat(day):%-d %b %Y}"
