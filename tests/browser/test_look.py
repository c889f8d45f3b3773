"""Looks that only a browser shows: wide tables on a phone, pages on paper, dark colours of the documentation."""

import io
from collections.abc import Callable

import pypdf
import pytest
from playwright.sync_api import ViewportSize

from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.store import Store
from tests.browser.test_every_page import FITS, demo_session
from tests.browser.visit import PATIENCE, Visit
from tests.cli.test_activity import CALL
from tests.support.program import until
from tests.support.sample_pages import Sample

__all__ = ["demo_session"]  # a fixture
pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 800}
LINES = """cells => cells.map(cell => {
    const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length;
})"""
HEIGHTS = "cells => cells.map(cell => cell.clientHeight / parseFloat(getComputedStyle(cell).lineHeight))"
WIDEST = "pictures => pictures.map(picture => getComputedStyle(picture).maxWidth)"
SIGNS = r"""name => {
    name.textContent = '\u05e9\u05dc\u05d5\u05dd!';
    const left = [0, 4].map(place => {
        const sign = document.createRange();
        sign.setStart(name.firstChild, place); sign.setEnd(name.firstChild, place + 1);
        return sign.getBoundingClientRect().left - name.getBoundingClientRect().left;
    });
    return [left[1] < 1, left[1] < left[0]];
}"""
ALIGNED = "cell => getComputedStyle(cell).textAlign"
DRAWING = "document.querySelector('.chart canvas').toDataURL()"


def test_numbers_of_hours_stay_on_a_line_and_an_edge_shows_that_the_table_scrolls(
    visit: Callable[..., Visit], demo_session: Sample
) -> None:
    window = visit(viewport=PHONE)
    window.add_cookie("musicsvc", demo_session.session)
    window.page.goto("/insights/artist/3?period=1-year")
    hours = window.page.locator("table.hours")
    for number in ("0", "1,234,567"):
        hours.locator("td").evaluate_all("(cells, text) => cells.forEach(cell => { cell.textContent = text; })", number)
        assert set(hours.locator("th, td").evaluate_all(LINES)) == {1}
        frame = hours.locator("..")
        assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth + 100")
        assert window.page.evaluate(FITS)
    layers = frame.evaluate("frame => getComputedStyle(frame).backgroundAttachment")
    assert layers == "local, local, scroll, scroll"
    assert "rgba(0, 0, 0, 0)" in hours.locator("thead th").last.evaluate(
        "cell => getComputedStyle(cell).backgroundColor"
    )


def test_a_long_name_takes_two_lines_of_a_table_and_names_of_artists_stand_at_the_left(
    visit: Callable[..., Visit], demo_session: Sample
) -> None:
    window = visit(viewport=PHONE)
    window.add_cookie("musicsvc", demo_session.session)
    for path in (f"/reports/{demo_session.values['/reports/{link}']}", "/insights?q=clavier"):
        window.page.goto(path)
        names = ".ranking tbody th > a, .ranking .subject-name > span > :first-child"
        lines = window.page.locator(names).evaluate_all(HEIGHTS)
        assert max(lines) == pytest.approx(2, abs=0.1), path
        widest = window.page.locator(".thumbnail").evaluate_all(WIDEST)
        assert set(widest) <= {"none"}, path  # else Firefox lays the name over the next column
    artists = window.page.locator("[data-found=track] td").first
    assert (artists.inner_text(), artists.evaluate(ALIGNED)) == ("Johann Sebastian Bach", "left")
    for path, found, most in (("/insights/tracks", ".names > span", 3), ("/insights", ".facts small", 2)):
        window.page.goto(path)
        artists = window.page.locator(found)
        artists.evaluate_all("cells => cells.forEach(cell => { cell.textContent = 'Clara Schumann, '.repeat(20); })")
        assert max(artists.evaluate_all(HEIGHTS)) == pytest.approx(most, abs=0.1), path
        for name in ("h1", ".subject-name a"):  # in Hebrew: at the left, its last sign first
            assert window.page.locator(name).first.evaluate(SIGNS) == [True, True], (path, name)


def test_activity_is_a_table_or_on_a_phone_cards_and_a_link_unfolds_a_form(
    visit: Callable[..., Visit], demo_session: Sample, store: Store
) -> None:
    with activity_log.build(store.url) as log:
        log.prepare()
        rows = [CALL._replace(request_id=f"{number:0128x}", account_id=1) for number in range(3)]
        log.write(lambda: calls.add(rows)).result()
    window = visit()
    window.add_cookie("musicsvc", demo_session.session)
    for size, display in ((WIDE, "table-row"), (PHONE, "block")):
        window.page.set_viewport_size(size)
        window.page.goto("/admin/activity")
        frame = window.page.get_by_role("region", name="Activity")
        row = frame.locator("tbody tr").first
        assert row.evaluate("row => getComputedStyle(row).display") == display
        assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
        assert window.page.evaluate(FITS)
    window.page.goto("/admin/accounts/1#assign")
    assert window.page.locator("#assign-email").is_visible()
    assert not window.page.locator("#email").is_visible()


def test_a_printed_page_has_figures_and_charts_in_light_colours_without_navigation(
    visit: Callable[..., Visit], demo_session: Sample
) -> None:
    light, dark = visit(viewport=WIDE, color_scheme="light"), visit(viewport=WIDE, color_scheme="dark")
    for path in ("/insights/artist/3", demo_session.values["/reports/{link}"]):
        for window in (light, dark):
            window.add_cookie("musicsvc", demo_session.session)
            window.page.goto(path if path.startswith("/") else f"/reports/{path}")
            window.page.locator(".chart canvas").first.wait_for()
        drawn, usual = dark.page.evaluate(DRAWING), light.page.evaluate(DRAWING)
        assert drawn != usual
        dark.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert dark.page.evaluate(DRAWING) == usual
        dark.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert dark.page.evaluate(DRAWING) == drawn

        text = " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(dark.page.pdf())).pages)
        assert "Hours of the week" in text
        for left_out in ("Sign out", "Share this report", "Download", "Last month", "Numbers by day", "documentation"):
            assert left_out not in text
        dark.page.emulate_media(media="print", color_scheme="dark")
        assert dark.page.locator(".chart canvas").first.is_visible()
        assert dark.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        ink = dark.page.locator("h1").evaluate("title => getComputedStyle(title).color")
        assert max(map(int, ink.removeprefix("rgb(").removesuffix(")").split(","))) < 90
        dark.page.set_viewport_size({"width": 700, "height": 900})  # of paper
        until(lambda: dark.page.evaluate(FITS))  # charts are redrawn after the change
        dark.page.emulate_media(media="null", color_scheme="dark")
        dark.page.set_viewport_size(WIDE)


def test_forced_colours_leave_the_focus_and_ticks_visible(visit: Callable[..., Visit], demo_session: Sample) -> None:
    window = visit(viewport=WIDE, forced_colors="active")
    window.add_cookie("musicsvc", demo_session.session)
    window.page.goto("/insights/artist/1")
    for selector in ("main a", "#share button", "[name=days]", "[name=period]", "[name=programs]"):
        window.page.locator(selector).first.focus()
        window.page.keyboard.press("Shift+Tab")
        window.page.keyboard.press("Tab")
        assert window.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid", selector
    assert window.page.evaluate("getComputedStyle(document.activeElement).appearance") == "auto"


def test_the_documentation_follows_the_theme_loads_nothing_from_elsewhere_and_leads_back(
    visit: Callable[..., Visit],
) -> None:
    window = visit(color_scheme="dark")
    window.page.goto("/docs")
    window.page.get_by_text("/api/v1/albums").first.wait_for(timeout=3 * PATIENCE)  # it draws all endpoints
    background = "getComputedStyle(document.documentElement).backgroundColor"
    dark = window.page.evaluate(background)
    assert max(map(int, dark.removeprefix("rgb(").removesuffix(")").split(","))) < 60
    window.page.emulate_media(color_scheme="light")
    until(lambda: window.page.evaluate(background) != dark)
    window.page.get_by_role("link", name="musicsvc").first.click()
    window.page.wait_for_url("**/")
    assert (window.errors, window.foreign) == ([], [])
