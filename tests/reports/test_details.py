"""The parts of the report for listening, hours, milestones and releases: their texts, colours and places on pages."""

import io
from datetime import date, timedelta
from itertools import pairwise

import pypdf
import pytest

from musicsvc.reports import pdf
from musicsvc.reports.charts import details
from musicsvc.reports.tables import JSON
from tests.reports.pictures import contrast
from tests.reports.test_pdf import card, content, pages

HEARD = [card("Completion", "51.7 %", "on average, median 50.0 %"), card("Skips", "41")]
BEST = {"date": "2026-02-14", "plays": 1312}


def release(place: int, days: int = 28) -> JSON:
    points = [{"day": day, "plays": 1000 * (place + 1) // (day + 1), "listeners": day + 1} for day in range(days)]
    released = date(2026, 1, 1) + timedelta(days=place)
    return {"name": f"Album {place}", "release_date": released.isoformat(), "points": points, "open": None}


def milestones(name: str, reached: dict[int, str], *, kind: str = "track", best: JSON | None = BEST) -> JSON:
    plays = [{"count": number, "at": f"{day}T04:05:06.000000Z"} for number, day in reached.items()]
    return {"kind": kind, "name": name, "plays": plays, "best_day": best}


def detailed(albums: int = 4, days: int = 28) -> JSON:
    return content() | {
        "listening_cards": HEARD,
        "hours": {"hours": [[day * hour for hour in range(24)] for day in range(7)]},
        "milestones": [milestones(f"Song {each}", {100: "2026-02-14"}) for each in range(20)],
        "releases": {"releases": [release(each, days) for each in range(albums)], "days": days},
    }


def test_the_cells_of_the_heat_map_are_legible_and_darker_for_more_plays() -> None:
    backgrounds = [fill for fill, _ in details.LEVELS]
    assert [contrast(fill, ink) >= 4.5 for fill, ink in details.LEVELS] == [True] * 6
    assert [contrast(fill, "#ffffff") for fill in backgrounds] == sorted(
        contrast(each, "#ffffff") for each in backgrounds
    )
    assert all(contrast(one, other) > 1.15 for one, other in pairwise(backgrounds))
    found = details.hours([[0, 1, 20, 21, 99, 100, *[0] * 18], *[[0] * 24] * 6])
    assert found is not None
    cells = found["rows"][0]["cells"]
    assert [backgrounds.index(cell["fill"]) for cell in cells[:6]] == [0, 1, 1, 2, 5, 5]
    assert [cell["text"] for cell in cells[:6]] == ["0", "1", "20", "21", "99", "100"]
    assert found["rows"][0]["total"] == "241"
    assert found["most"] == "100 on Mondays from 05:00"
    assert details.hours([[0] * 24] * 7) is None


def test_the_lines_of_releases_are_told_apart_by_colour_and_dash() -> None:
    found = details.releases([release(each) for each in range(10)], 28)
    assert found is not None
    assert len({line["dash"] for line in found["lines"]}) == 10  # also without colour
    assert len({line["colour"] for line in found["lines"][:5]}) == 5
    assert min(contrast(line["colour"], "#ffffff") for line in found["lines"]) >= 4.5


@pytest.mark.parametrize("digits", [1, 4, 7])
def test_large_numbers_get_smaller_in_the_cells(digits: int) -> None:
    found = details.hours([[10**digits - 1] * 24] * 7)
    assert found is not None
    assert found["size"] * details.SIGN * digits <= details.CELL + 1e-9


def test_figures_that_are_unknown_are_dashes() -> None:
    unknown = card("Completion", None)
    found = pdf.page_data(content() | {"listening_cards": [*HEARD, unknown]})["listening"]
    assert [(card["label"], card["value"], card["note"]) for card in found] == [
        ("Completion", "51.7 %", "on average, median 50.0 %"),
        ("Skips", "41", ""),
        ("Completion", "–", ""),
    ]


def test_milestones_have_a_column_for_each_of_the_highest_numbers() -> None:
    reached = {10**power: f"2026-01-{power:02}" for power in range(2, 7)}
    first = {number: reached[number] for number in (100, 1_000)}
    rows = [milestones("A", reached, kind="artist"), milestones("B", first), milestones("C", {}, best=None)]
    found = details.milestones(rows)
    assert found is not None
    assert found["numbers"] == ["1,000", "10,000", "100,000", "1,000,000"]
    assert [row["reached"] for row in found["rows"]] == [
        ["3 Jan 2026", "4 Jan 2026", "5 Jan 2026", "6 Jan 2026"],
        ["3 Jan 2026", "–", "–", "–"],
    ]
    assert found["rows"][0]["best"] == "14 Feb 2026: 1,312"
    assert details.milestones([]) is None


def test_releases_have_a_line_each_and_tables_of_at_most_four() -> None:
    short, none = release(1, 2) | {"open": 1}, release(2, 0) | {"name": "None", "release_date": None}
    found = details.releases([release(0, 3), short, none], 28)
    assert found is not None
    assert [line["date"] for line in found["lines"]] == ["1 Jan 2026", "2 Jan 2026", "no release date"]
    assert [line["points"] for line in found["lines"]] == [[[0, 0.5], [0.5, 0.25], [1, 0.1665]], [[0, 1]], []]
    assert [line["open"] for line in found["lines"]] == [[], [[0, 1], [0.5, 0.5]], []]
    assert [label["label"] for label in found["labels"]] == ["day 0", "day 1", "day 2"]
    (table,) = found["tables"]
    assert table["rows"] == [
        ["0", "1,000", "1", "2,000", "1", "–", "–"],
        ["1", "500", "2", "1,000", "2", "–", "–"],
        ["2", "333", "3", "–", "–", "–", "–"],
    ]
    assert table["totals"] == ["1,833", "3,000", "0"]
    assert details.releases([none], 28) is None
    many = details.releases([release(each, 365) for each in range(6)], 365)
    assert many is not None
    assert [(each["first"], each["count"], each["step"]) for each in many["tables"]] == [(0, 4, 14), (4, 2, 14)]
    assert [row[0] for row in many["tables"][0]["rows"]][:3] == ["0", "14", "28"]


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["a4", "letter"])
def test_no_table_of_the_parts_is_broken(paper: str) -> None:
    texts = pages(pdf.render(detailed(6), paper))
    whole = " ".join(texts)
    assert "Completion 51.7 %" in texts[0]
    assert (
        sum("Mon 0 0 0" in text and f"Sun {' '.join(str(6 * hour) for hour in range(24))}" in text for text in texts)
        == 1
    )
    assert sum("Song 0 track" in text and "Song 19 track 14 Feb 2026 14 Feb 2026: 1,312" in text for text in texts) == 1
    assert whole.count("Releases compared") == 1
    for album, other in ((0, 3), (4, 5)):
        assert sum(f"Album {album} Album {album + 1}" in text and f"Album {other} Day" in text for text in texts) == 1
    assert sum("27 35 28 71 28 107 28 142 28 All" in text for text in texts) == 1


def test_an_empty_period_has_no_listening() -> None:
    empty = content(plays=0) | {"listening_cards": HEARD}
    (text,) = pages(pdf.render(empty))
    assert "Listening" not in text
    assert "Hours of the week" not in text


def place_of_first_legend(name: str) -> float:
    """Return the distance of an album's name from the left edge, in the legend of the releases."""
    report = detailed(1)
    report["releases"]["releases"][0]["name"] = name
    found: list[tuple[str, float]] = []
    page = pypdf.PdfReader(io.BytesIO(pdf.render(report))).pages[-1]
    page.extract_text(visitor_text=lambda text, matrix, *_: found.append((text, matrix[4])))
    return next(left for text, left in found if text and text in name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ליל", "ليالي"])
def test_a_name_from_right_to_left_begins_where_others_begin(name: str) -> None:
    """Otherwise the first number of its date stands before it."""
    assert place_of_first_legend(name) == place_of_first_legend("Album")


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["a4", "letter"])
def test_a_long_name_above_the_table_of_releases_stays_within_its_columns_and_on_its_page(paper: str) -> None:
    names = [f"{word} " * 6 for word in ("Alpha", "Bravo", "Civil", "Delta")]
    report = detailed()
    for each, name in zip(report["releases"]["releases"], names, strict=True):
        each["name"] = name
    page = next(
        page
        for page in pypdf.PdfReader(io.BytesIO(pdf.render(report, paper))).pages
        if "Releases" in page.extract_text()
    )
    found: list[tuple[float, float, str]] = []
    page.extract_text(visitor_text=lambda text, cm, tm, *_: found.append((cm[4] + tm[4], cm[5] + tm[5], text.strip())))
    below = next(y for _, y, text in found if text.startswith("day 0"))
    margin, first = 51, 40  # points: of the page, and the width of the column of days
    width = (float(page.mediabox.width) - 2 * margin - first) / 4
    for number, name in enumerate(names):
        lines = [x for x, y, text in found if y < below and text.startswith(name[:5])]
        left = margin + first + number * width
        assert len(lines) > 1  # of the heading
        assert all(left <= x < left + width / 2 for x in lines), (name, lines)
    assert any(text == "All" for *_, text in found)  # the last row
