"""The charts of the pages of figures show the numbers of the table below them."""

from collections.abc import Callable
from typing import Literal

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures, plays
from tests.browser.visit import Visit

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

COLORS: dict[Literal["light", "dark"], str] = {"light": "81,54,196", "dark": "179,164,255"}  # of the line of plays
HAS_COLOR = """(canvas, color) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    for (let at = 0; at < pixels.length; at += 4) {
        if (pixels.slice(at, at + 3).join() === color) return true;
    }
    return false;
}"""


def test_a_chart_shows_the_numbers_of_the_table_in_the_colors_of_the_theme(
    visit: Callable[..., Visit], store: Store, clock: MovableClock
) -> None:
    def load() -> str:
        fixtures.load(now=clock.now())
        plays.load(now=clock.now())
        demo = users.by_email(fixtures.DEMO_EMAIL)
        return sessions.create(demo, address="127.0.0.1", agent="Tests/1.0", now=clock.now())

    window = visit(color_scheme="light", viewport={"width": 1280, "height": 900})
    window.add_cookie("musicsvc", store.write(load).result())
    page = window.page
    page.goto("/insights/artist/1?period=7-days")
    chart = page.locator("figure.chart").first
    chart.locator("canvas").wait_for()
    chart.get_by_text("Numbers by day").click()
    rows = [row.locator("th, td").all_inner_texts() for row in chart.locator("tbody tr").all()]
    over = chart.locator(".u-over")
    width = over.bounding_box()["width"]  # type: ignore[index]  # it is visible
    for place, row in enumerate(rows):
        over.hover(position={"x": min(place * width / (len(rows) - 1) + 1, width - 1), "y": 50})
        assert chart.locator("strong").all_inner_texts() == row[1:]
        assert chart.locator(".chart-legend").inner_text().split("\n")[-1].strip().endswith(row[0])
    assert window.errors == []  # reading pixels, below, causes warnings
    for theme, violet in COLORS.items():
        page.emulate_media(color_scheme=theme)
        # Not `wait_for_function`, which the Content-Security-Policy of the page refuses.
        for _ in range(200):
            if chart.locator("canvas").evaluate(HAS_COLOR, violet):
                break
            page.wait_for_timeout(50)
        assert chart.locator("canvas").evaluate(HAS_COLOR, violet)
