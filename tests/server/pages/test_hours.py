"""The page of an artist, album or track shows hours of the week in a time zone."""

import pytest

from tests.support.figures_world import World
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]
DAYS = "from=2026-01-15&to=2026-02-20"


async def test_hours_are_shown_in_a_time_zone_that_stays_chosen(world: World) -> None:
    path = f"/insights/artist/{world.made.artists[0]}?{DAYS}"
    (utc,) = [rows for rows in (await world.page(path)).tables if rows[0][0] == "UTC"]
    (local,) = [rows for rows in (await world.page(f"{path}&zone=Asia/Kolkata")).tables if rows[0][0] == "Local"]
    week, shifted = ([count for row in rows[1:] for count in row[1:]] for rows in (utc, local))
    assert shifted == week[-5:] + week[:-5]  # half past begins the hour
    assert local[0][1:3] == ["0:30", "1:30"]
    page = await world.page(f"{path}&zone=Europe/Berlin")
    assert "Hours in Europe/Berlin. The days of the period are days in UTC." in page.text
    related = [target for target in page.links() if target.startswith("/insights/track/") and DAYS in target]
    assert len(related) > 1
    assert all(target.endswith("&zone=Europe%2FBerlin") for target in related)
    for wrong in ("Mars/Olympus", "../UTC", ""):
        assert (await world.browser.get(f"{path}&zone={wrong}")).status == 422
