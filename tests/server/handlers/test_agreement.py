"""A figure is the same from the endpoint, chart totals, JSON, CSV, report, PDF and command line."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from musicsvc.cli import main
from musicsvc.cli.session import Session
from musicsvc.clock import DAY, MovableClock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import blocks
from tests.conftest import NOW
from tests.support.listening_world import Catalog, catalog, correct
from tests.support.oracle import Period
from tests.support.pdf_text import in_print, printed
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

TIMEFRAMES = {"7-days": "7d", "30-days": "30d", "90-days": "90d", "1-year": "1y"}
# Beside the names, a month, and days of which the last is today, compared with days that end within a day.
PERIODS: list[Period] = [*TIMEFRAMES, ("2026-02-01", "2026-02-28"), ("2026-01-10", "2026-03-01")]
NOUNS = ("track", "album", "artist")


class Figures(NamedTuple):
    """All figures of a track, album or artist."""

    plays_total: int
    plays_period: int
    listeners_total: int
    listeners_period: int
    likes: int
    reposts: int
    plays_change: float | None
    listeners_change: float | None
    first_play: str | None

    @classmethod
    def of(cls, blocks: Any) -> Figures:
        """The figures of the four blocks."""
        return cls(
            blocks["plays"]["total"],
            blocks["plays"]["period"],
            blocks["listeners"]["total"],
            blocks["listeners"]["unique"],
            *blocks["engagement"].values(),
            *blocks["growth"].values(),
        )


def two_years() -> Catalog:
    """Create the catalog of listening_world with two years of plays, partly rolled up, beside another account's.

    It was corrected then: what was merged, deleted and erased counts as before.
    """
    chance = random.Random(11)

    def some(made: Catalog) -> list[tuple[int, int, str]]:
        days = [min(int(chance.expovariate(1 / 70)), 780) for _ in range(700)]
        return [
            (
                made.tracks[chance.choice((0, 0, 0, 1, 2, 3))],
                NOW - day * DAY - chance.randrange(2000) * SLOT,
                str(chance.randrange(50)),
            )
            for day in days
        ]

    other, made = catalog(NOW), catalog(NOW)
    made.add_plays(some(made))
    other.add_plays(some(other))
    while blocks.roll_up(100):
        pass
    made.add_plays(some(made))
    made.give(
        *([(made.tracks[chance.randrange(4)], NOW - chance.randrange(300) * DAY) for _ in range(30)] for _ in "lr")
    )
    made.add_at_edges(NOW)
    correct(made, NOW)
    return made


@pytest.fixture(scope="module")
def made(shared: Shared) -> Catalog:
    return shared.store.write(two_years).result()


@pytest.fixture
def store(shared: Shared) -> Store:
    """The store of the server of all tests, which only read."""
    return shared.store


@pytest.fixture
def ask(shared: Shared, made: Catalog) -> Client:
    return shared.client.holding(made.token)


def in_body(period: Period) -> dict[str, str]:
    """Return the fields of a body that select a period."""
    return {"period": period} if isinstance(period, str) else dict(zip(("from", "to"), period, strict=True))


def in_query(period: Period) -> str:
    return urlencode(in_body(period))


def in_chart_query(period: Period) -> str:
    return f"timeframe={TIMEFRAMES[period]}" if isinstance(period, str) else in_query(period)


def timeframe_of(period: Period) -> Period:
    """Return the timeframe of a chart (the dates, if the period has no name)."""
    return TIMEFRAMES[period] if isinstance(period, str) else period


def window(period: Period, now: int) -> periods.Window:
    if isinstance(period, str):
        return periods.window(period, now)
    first, last = map(date.fromisoformat, period)
    return periods.between(first, last, now)


async def data(client: Client, path: str) -> Any:
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == 200
    return answer.json["data"]


async def body(client: Client, name: str, **sent: Any) -> bytes:
    answer = await client.post(f"{INSIGHTS}/export/{name}", sent)
    assert answer.status == 200
    return answer.body


@pytest.mark.slow
@pytest.mark.parametrize("period", PERIODS, ids=str)
@on_shared_loop
async def test_every_figure_is_the_same_from_every_source(
    ask: Client, made: Catalog, clock: MovableClock, period: Period
) -> None:
    numbers = dict(zip(NOUNS, (made.tracks, made.albums, made.artists), strict=True))
    past, now = made.past, clock.now()
    wanted: dict[str, Callable[[int], Any]] = {
        "track": lambda each: past.figures("track", each, period, now),
        "album": lambda each: past.album(each, period, now),
        "artist": lambda each: past.artist(each, period, now, 0),
    }
    for noun in NOUNS:
        asked = {each: await data(ask, f"{noun}s/{each}?{in_query(period)}") for each in numbers[noun]}
        figures = {each: Figures.of(found) for each, found in asked.items()}
        assert asked == {each: wanted[noun](each) for each in numbers[noun]}

        rows = json.loads(await body(ask, "json", type=f"{noun}s", **in_body(period)))["data"]["rows"]
        deleted = [rows.pop()] if noun == "track" else []
        assert [row["track_id"] for row in deleted] == [None] * len(deleted)
        assert {row[f"{noun}_id"]: Figures(*(row[name] for name in Figures._fields)) for row in rows} == figures

        text = (await body(ask, "csv", type=f"{noun}s", **in_body(period))).decode()
        lines = [*csv.DictReader(io.StringIO(text, newline=""))]
        assert [line["track"] for line in lines[len(figures) :]] == ["(deleted tracks)"] * len(deleted)
        del lines[len(figures) :]
        shown = {int(line[f"{noun}_id"]): tuple(line[name] for name in Figures._fields) for line in lines}
        assert shown == {each: tuple("" if part is None else str(part) for part in of) for each, of in figures.items()}

        for each, of in figures.items():
            chart = await data(ask, f"{noun}s/{each}/charts?{in_chart_query(period)}")
            assert chart == past.chart(noun, each, timeframe_of(period), now)
            assert tuple(chart["totals"].values()) == (of.plays_period, of.listeners_period, of.likes, of.reposts)


@pytest.mark.parametrize("period", PERIODS, ids=str)
@on_shared_loop
async def test_daily_rows_are_the_days_of_the_charts(ask: Client, made: Catalog, period: Period) -> None:
    rows = json.loads(await body(ask, "json", type="plays", **in_body(period)))["data"]["rows"]
    text = (await body(ask, "csv", type="plays", **in_body(period))).decode()
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [{name: "" if part is None else str(part) for name, part in row.items()} for row in rows] == lines
    assert rows == sorted(rows, key=lambda row: (row["date"], row["track_id"] is None, row["track_id"]))
    for track in made.tracks:
        points = (await data(ask, f"tracks/{track}/charts?{in_chart_query(period)}"))["points"]
        charted = [(point["date"], point["plays"], point["listeners"]) for point in points if point["plays"]]
        assert charted == [(row["date"], row["plays"], row["listeners"]) for row in rows if row["track_id"] == track]


@pytest.mark.slow
@pytest.mark.parametrize("period", PERIODS, ids=str)
@on_shared_loop
async def test_the_report_and_its_pdf_have_the_same_figures(
    ask: Client, made: Catalog, clock: MovableClock, period: Period
) -> None:
    report = json.loads(await body(ask, "report", **in_body(period), include_charts=True))["data"]
    past, now = made.past, clock.now()
    past.by_artist[0] = [*{*made.tracks, *(play.track for play in past.plays)}]  # no artist's id: everything together
    everything = past.figures("artist", 0, period, now)
    assert report["period"] == everything.pop("period")
    assert {name: report["summary"][name] for name in everything} == everything
    assert report["charts"] == past.chart("artist", 0, timeframe_of(period), now)
    played = [row for row in past.artist(0, period, now, 0)["top_tracks"] if row["plays"]["period"]]
    assert report["top_tracks"] == played != []
    for row in report["top_tracks"]:
        figures = await data(ask, f"tracks/{row['id']}?{in_query(period)}")
        assert row["plays"] == figures["plays"]
        assert row["listeners"]["unique"] == figures["listeners"]["unique"]

    text = printed(await body(ask, "pdf", **in_body(period)))
    summary = Figures.of(report["summary"])
    first = past.first_plays("artist", 0, period, now)
    for figure in (*summary[:6], *([] if first else (summary.plays_change, summary.listeners_change))):
        assert in_print(figure) in text, text
    assert f"Plays {summary.plays_period:,} {in_print(summary.plays_change, first)}" in text
    cards = {"Plays": summary[1], "Listeners": summary[3], "Likes": summary[4], "Reposts": summary[5]}
    for label, figure in cards.items():
        assert f"{label} {in_print(figure)} " in text
    assert f"Plays of all time {summary.plays_total:,} Listeners of all time {summary.listeners_total:,}" in text
    for noun, numbers in (("Track", made.tracks), ("Album", made.albums), ("Artist", made.artists)):
        for number, each in enumerate(numbers):
            of = Figures.of(await data(ask, f"{noun.lower()}s/{each}?{in_query(period)}"))
            if of.plays_period:
                first = past.first_plays(noun.lower(), each, period, now)
                change = in_print(of.plays_change, first)
                line = f"{of.plays_period:,} {change} {of.listeners_period:,} {of.plays_total:,}"
                assert line in text.partition(f"{noun} {number} ")[2], text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "json", "xlsx", "pdf"])
@on_shared_loop
async def test_the_command_line_writes_the_bytes_of_the_endpoint(
    ask: Client,
    made: Catalog,
    store: Store,
    clock: MovableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    form: str,
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))
    folder = tmp_path / "files"
    folder.mkdir()
    email = store.read(lambda: users.get(made.manager.user_id).email).result()

    period = PERIODS[-1]
    chosen = ["--from", period[0], "--to", period[1]]

    def run(type_: str, *more: str) -> None:
        line = ["export", type_, "--user", email, *chosen, *more]
        main.command().main(line, prog_name="musicsvc", obj=Session(clock=clock), standalone_mode=False)

    for type_ in export_rows.COLUMNS:
        sent = in_body(period) if form == "pdf" else {"type": type_, **in_body(period)}
        answered = await body(ask, form, **sent)
        await asyncio.to_thread(run, type_, "--format", form)
        assert capsysbinary.readouterr().out == answered
        file = folder / f"{type_}.{form}"
        await asyncio.to_thread(run, type_, "-o", str(file))
        assert file.read_bytes() == answered
    names = {f"{type_}.{form}{more}" for type_ in export_rows.COLUMNS for more in ("", ".meta.json")}
    assert set(os.listdir(folder)) == names  # noqa: PTH208 - ASYNC240


def test_columns_of_files_are_those_that_are_compared() -> None:
    for type_, further in (("tracks", 5), ("albums", 3), ("artists", 0)):
        columns = export_rows.COLUMNS[type_]
        assert (*columns[: len(columns) - further - 1][-8:], columns[-1]) == Figures._fields
