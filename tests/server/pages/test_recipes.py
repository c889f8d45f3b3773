"""The recipes for spreadsheets and other programs read the figures of the API with the real programs."""

import asyncio
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from musicsvc.store.models import Track
from tests.server.pages.test_links_for_programs import DAYS, share
from tests.support import recipes
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite"), on_shared_loop]
FORMULA = '=HYPERLINK("x"), "quoted" ♪'


async def run(world: World, program: str, link: str, folder: Path) -> str:
    """Run a recipe while the server answers."""
    return await asyncio.to_thread(recipes.run, program, f"{world.shared.client.root}{link}", folder)


async def by_month(world: World) -> dict[str, int]:
    """Return the plays of the first artist in each month of DAYS, as the API has them."""
    months: Counter[str] = Counter()
    for point in await points(world):
        months[point["date"][:7]] += point["plays"]
    return dict(months)


async def points(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await world.api(f"artists/{world.made.artists[0]}/charts?{DAYS}"))["points"]
    return found


async def link(world: World) -> str:
    return await share(world, f"artist/{world.made.artists[0]}/share?{DAYS}")


@pytest.mark.parametrize("program", ["pandas", "DuckDB"])
async def test_a_program_of_python_adds_up_the_plays_of_months(world: World, program: str, tmp_path: Path) -> None:
    printed = await run(world, program, await link(world), tmp_path)
    numbers = [line.replace("│", " ").split() for line in printed.splitlines() if "2026-" in line]
    expected = await by_month(world)
    assert {month[:7]: int(plays) for month, plays in numbers} == expected
    assert (len(expected), 0 in expected.values()) == (2, False)


async def test_curl_downloads_a_file_only_if_a_figure_has_changed(world: World, tmp_path: Path) -> None:
    shared, file = await link(world), tmp_path / "days.csv"
    await run(world, "curl", shared, tmp_path)
    assert len(file.read_text().splitlines()) == len(await points(world)) + 1
    file.write_text("kept")
    await run(world, "curl", shared, tmp_path)
    assert file.read_text() == "kept"
    on_a_day = int(1e6 * 86_400 * (date(2026, 2, 1) - date(1970, 1, 1)).days)
    world.shared.store.write(lambda: world.made.add_plays([(world.made.tracks[0], on_a_day, "newest")])).result()
    world.shared.clock.advance(10_000_000)
    await run(world, "curl", shared, tmp_path)
    plays = {each["date"]: each["plays"] for each in await points(world)}
    assert f'"2026-02-01",{plays["2026-02-01"]},' in file.read_text()


async def test_libreoffice_shows_numbers_as_numbers_and_runs_no_formula(world: World, tmp_path: Path) -> None:
    track = Track.id == world.made.tracks[3]
    world.shared.store.write(lambda: Track.update(name=FORMULA).where(track).execute()).result()
    await run(world, "LibreOffice", await link(world), tmp_path)
    head, *rows = openpyxl.load_workbook(tmp_path / "tracks.xlsx").active.values
    assert head[:4] == ("track", "artists", "album", "plays_period")
    of = {row[0].removeprefix("'"): row for row in rows}
    ids = {f"Track {each}": track for each, track in enumerate(world.made.tracks)} | {FORMULA: world.made.tracks[3]}
    for name, row in of.items():
        data = await world.api(f"tracks/{ids[name]}?{DAYS}")
        assert row[3:5] == (data["plays"]["period"], data["listeners"]["unique"]), name
    assert FORMULA in of
