"""The PDF report: every script, no plays, long names, and names that look like code."""

import io
from datetime import date, timedelta

import pypdf
import pytest

from musicsvc.reports import pdf
from musicsvc.reports.charts import graphs
from musicsvc.reports.tables import JSON
from tests.reports.pictures import opened

LAST = date(2026, 3, 1)
NAMES = {
    "cyrillic": "Лебединое озеро",
    "greek": "Το καλοκαίρι",
    "han": "月光下的古老城市与海",
    "kana": "ゆめのあとのクラッシュ",
    "hangul": "새벽의 노래",
    "arabic": "ليالي القاهرة",
    "hebrew": "שיר השירים",
    "devanagari": "रात की धुन",
    "thai": "เพลงรักฤดูฝน",
    "code": '#panic("x") $x$ @y *b* _i_ `c` <l> \\ // "q"',
    "one word": "W" * 255,
    "many words": "Concerto Grosso in D minor, " * 9,
    "no font": "\U0001f3b5\ue000",
}


def content(days: int = 30, *, plays: int = 9, name: str | None = "Northern Lights", tracks: int = 10) -> JSON:
    """Return a report on this many days, each with this many plays."""
    rows = [
        {
            "name": f"Track {each}",
            "artists": ["Amy Beach", "Clara Schumann"],
            "code": f"ISRC DEZ9924{each:05}" if each % 3 else None,
            "plays": {"total": 20_000 - each, "period": 1000 - each},
            "listeners": {"unique": 700 - each},
            "plays_change": (12.5, -3.1, None, 0.0)[each % 4],
            "first_plays": None,
        }
        for each in range(tracks if plays else 0)
    ]
    first = LAST - timedelta(days=days - 1)
    of_day = {"plays": plays, "listeners": plays, "likes": 1, "reposts": 0}
    return {
        "name": name,
        "period": {"start": first.isoformat(), "end": LAST.isoformat()},
        "generated_at": "2026-03-01T12:34:56.000000Z",
        "summary": {
            "plays": {"total": plays * 1000, "period": plays * days},
            "tracks_count": tracks,
            "albums_count": 2,
            "artists_count": 1,
        },
        "cards": [
            card("Plays", f"{plays * days:,}", grows=True, change=-12.5 if plays else None),
            card("Listeners", str(plays), grows=True),
            card("Likes", "7", "given in these days"),
            card("Reposts", "3", "given in these days"),
        ],
        "all_time": {"Plays of all time": f"{plays * 1000:,}", "Listeners of all time": f"{plays * 100:,}"},
        "charts": {"points": [{"date": f"{first + timedelta(days=each)}"} | of_day for each in range(days)]},
        "top_tracks": rows,
        "top_albums": rows[:3],
        "top_artists": [row | {"artists": [], "code": None} for row in rows[:2]],
        "hours": {"hours": [[0] * 24] * 7},
        "releases": {"releases": [], "days": 28},
        "listening_cards": [],
        "milestones": [],
        **dict.fromkeys(("before", "last_played", "first_plays")),
        "unfinished": False,
    }


def card(title: str, value: str | None, note: str = "", *, grows: bool = False, change: float | None = None) -> JSON:
    return {"title": title, "value": value, "note": note, "grows": grows, "change": change}


def pages(document: bytes) -> list[str]:
    """Return the text of each page, with single blanks."""
    return [" ".join(page.extract_text().split()) for page in pypdf.PdfReader(io.BytesIO(document)).pages]


def test_a_report_has_its_title_its_figures_and_numbered_pages() -> None:
    found = pages(pdf.render(content()))

    assert "Northern Lights" in found[0]
    assert "31 Jan – 1 Mar 2026" in found[0]
    assert "Plays 270 −12.5 %" in found[0]
    assert "Made on 1 Mar 2026, 12:34 UTC" in found[0]
    assert [f"Page {each} of {len(found)}" in text for each, text in enumerate(found, 1)] == [True] * len(found)
    for each in range(10):
        code = f"· ISRC DEZ9924{each:05} " if each % 3 else ""
        assert f"Track {each} Amy Beach, Clara Schumann {code}{1000 - each:,}" in " ".join(found)
    assert "Growth" in found[1]


@pytest.mark.parametrize("days", [7, 30, 90, 1026])
def test_a_report_without_plays_has_one_page(days: int) -> None:
    (text,) = pages(pdf.render(content(days, plays=0)))
    assert "Nobody has played this yet." in text
    assert f"· {days:,} days" in text
    assert "Most played" not in text


def test_a_report_of_one_artist_has_no_tables_of_one_row() -> None:
    def ranked(artists: int, tracks: int, albums: int) -> list[str]:
        report = content(tracks=12)
        report["summary"]["artists_count"] = artists
        tops = {"top_tracks": tracks, "top_albums": albums, "top_artists": 1}
        text = " ".join(
            pages(pdf.render(report | {name: report["top_tracks"][:count] for name, count in tops.items()}))
        )
        return [noun for noun in ("tracks", "albums", "artists") if f"Most played {noun}" in text]

    assert ranked(1, 5, 3) == ["tracks", "albums"]
    assert ranked(1, 5, 1) == ["tracks"]
    assert ranked(0, 1, 1) == []  # of a track
    assert ranked(4, 2, 1) == ["tracks", "albums", "artists"]


@pytest.mark.parametrize("plays", [0, 9])
@pytest.mark.parametrize("pixels_per_point", [0.5, 2])
def test_a_report_is_also_drawn_as_a_picture_of_each_page(plays: int, pixels_per_point: float) -> None:
    report = content(plays=plays)

    pictures = pdf.pages(report, pixels_per_point)

    sheets = [page.mediabox for page in pypdf.PdfReader(io.BytesIO(pdf.render(report))).pages]
    assert len(pictures) == len(sheets)
    for picture, sheet in zip(map(opened, pictures), sheets, strict=True):
        expected = (float(sheet.width) * pixels_per_point, float(sheet.height) * pixels_per_point)
        assert picture.size == pytest.approx(expected, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_of_any_kind_is_drawn_as_a_name(name: str) -> None:
    report = content(name=name)
    first, *others = report["top_tracks"]
    rows = [first | {"name": name, "artists": [name, name]}, *others]

    found = pages(pdf.render(report | {"top_tracks": rows, "top_albums": rows[:3]}))

    assert 2 <= len(found) <= 3
    if len(name) < 20 and name.isprintable() and name[0] < "\u0500":
        assert " ".join(found).count(name) >= 4


def test_names_that_are_data_are_not_run() -> None:
    text = " ".join(pages(pdf.render(content(name=NAMES["code"]))))
    assert '#panic("x") $x$ @y *b* _i_ `c` <l>' in text


def test_scripts_are_drawn_with_glyphs_and_not_with_signs_for_missing_ones() -> None:
    for name in ("cyrillic", "greek", "han", "kana", "hangul", "arabic", "hebrew", "devanagari", "thai"):
        assert "□" not in pdf.page_data(content(name=NAMES[name]))["title"]["text"]
    assert "□" in pdf.page_data(content(name=NAMES["no font"]))["title"]["text"]


def test_the_same_figures_give_the_same_bytes() -> None:
    assert pdf.render(content()) == pdf.render(content())


def test_a_report_on_everything_has_a_title_too() -> None:
    assert pdf.EVERYTHING in pages(pdf.render(content(name=None)))[0]


@pytest.mark.parametrize(
    ("most", "step"), [(0, 1), (1, 1), (5, 1), (6, 2), (10, 2), (11, 5), (2265, 500), (2501, 1000), (10**9, 2 * 10**8)]
)
def test_ticks_are_round_and_reach_the_highest_day(most: int, step: int) -> None:
    assert graphs.nice_step(most) == step


def test_a_graph_reaches_from_edge_to_edge_and_names_its_peak() -> None:
    drawn = graphs.graph("Plays", graphs.Line(date(2026, 1, 30), [0, 10, 5]))

    assert drawn["points"] == [[0, 0], [0.5, 1], [1, 0.5]]
    assert [tick["label"] for tick in drawn["ticks"]] == ["0", "2", "4", "6", "8", "10"]
    assert [label["label"] for label in drawn["labels"]] == ["30 Jan", "31 Jan", "1 Feb"]
    assert drawn["peak"] == {"at": [0.5, 1], "label": "10 on 31 Jan"}
    assert (drawn["open"], drawn["before"]) == ([], [])


def test_a_graph_has_the_days_before_and_leaves_its_last_day_open() -> None:
    line = graphs.Line(date(2026, 1, 30), [4, 3, 1], unfinished=True)
    drawn = graphs.graph("Plays", line, [1, 2, 5, 3, 4])

    assert drawn["points"] == [[0, 0.8], [0.25, 0.6]]
    assert drawn["open"] == [[0.25, 0.6], [0.5, 0.2]]
    assert drawn["before"] == [[0, 0.2], [0.25, 0.4], [0.5, 1], [0.75, 0.6], [1, 0.8]]
    assert [label["at"] for label in drawn["labels"]] == [0, 0.25, 0.5]


def test_a_graph_of_many_days_has_averages() -> None:
    drawn = graphs.graph("Plays", graphs.Line(date(2025, 1, 1), [*range(7)] * 20 + [9], unfinished=True), [3] * 141)

    assert drawn["title"] == "Plays, averages of 7 days"
    assert drawn["points"] == [[pytest.approx(place / 20), 0.75] for place in range(19)]
    last = [pytest.approx(19 / 20), pytest.approx((21 + 9) / 8 / 4)]  # of eight days
    assert drawn["open"] == [[pytest.approx(18 / 20), 0.75], last]
    assert drawn["peak"] == {"at": None, "label": "9 on 21 May 2025"}
    assert len(graphs.graph("Plays", graphs.Line(date(1926, 1, 1), [1] * 36_600))["points"]) < 130


@pytest.mark.parametrize("rest", range(7))
def test_the_last_point_of_a_year_is_an_average_of_a_week_at_least(rest: int) -> None:
    """A single quiet day at the end is no week of its own."""
    values = [10] * (52 * 7) + [0] * rest
    points = graphs.graph("Plays", graphs.Line(date(2025, 1, 1), values))["points"]
    assert len(points) == 52
    assert points[-1][1] == pytest.approx(points[0][1] * 7 / (7 + rest))
    short = graphs.graph("Plays", graphs.Line(date(2025, 1, 1), [4, 8]), [1] * 400)  # fewer days than a point has
    assert (len(short["points"]), len(short["before"])) == (1, 57)


@pytest.mark.parametrize(("longest", "averages"), [(131, 1), (911, 7), (3_901, 30), (11_701, 90), (36_600, 365)])
def test_a_point_of_a_line_is_a_day_week_month_quarter_or_year(longest: int, averages: int) -> None:
    found = [
        graphs.graph("Plays", graphs.Line(date(1926, 1, 1), [1] * days))["title"] for days in (longest, longest + 1)
    ]
    expected = "Plays" if averages == 1 else f"Plays, averages of {averages} days"
    assert found[0] == expected
    assert (found[1] == expected) == (averages == 365)


@pytest.mark.parametrize(("paper", "size"), [("a4", (595, 842)), ("letter", (612, 792))])
def test_a_report_is_laid_out_for_the_paper(paper: str, size: tuple[int, int]) -> None:
    found = pypdf.PdfReader(io.BytesIO(pdf.render(content(), paper))).pages
    assert len(found) == 2
    for page in found:
        assert (round(page.mediabox.width), round(page.mediabox.height)) == size


def test_growth_is_labelled_with_the_days_that_it_compares_with() -> None:
    report = content()
    month = {"plays": [5] * 31, "listeners": [3] * 31, "partial": False}
    for label, days in (("previous 30 days", "the previous 30 days"), ("January 2026", "January 2026")):
        first, second = pages(pdf.render(report | {"before": month | {"label": label}}))
        assert f"Plays 270 −12.5 % vs {label} " in first
        assert first.count(label) == 5
        assert f"Most played tracks growth vs {label}" in second
        assert f"Listeners 9 none in {days} " in first
        assert f"Growth is percent against {days};" in first + second


def test_an_unfinished_day_is_named_below_the_graphs() -> None:
    assert pages(pdf.render(content() | {"unfinished": True}))[0].count("the last day was not over") == 2
    assert "the last day was not over" not in pages(pdf.render(content()))[0]


def test_a_report_on_one_day_has_no_graphs() -> None:
    assert "by day" not in pages(pdf.render(content(1)))[0]
    assert "Plays by day" in pages(pdf.render(content(2)))[0]


def test_of_days_with_as_many_plays_the_earliest_is_first_as_in_the_graph() -> None:
    data = pdf.page_data(content(7))
    assert [each["day"] for each in data["strongest"]] == [f"{each} Feb 2026" for each in range(23, 28)]
    assert data["graphs"][0]["peak"]["label"] == "9 on 23 Feb"


def test_the_days_compared_with_end_at_the_same_time_if_the_last_day_is_not_over() -> None:
    before = {"label": "previous 30 days", "plays": [5] * 30, "listeners": [3] * 30}
    for partial in (True, False):
        report = content() | {"before": before | {"partial": partial}, "unfinished": True}
        text = pages(pdf.render(report))[0]
        assert "The last day was not over when this was made" in text
        assert ("the days compared with end at the same time of day" in text) == partial


def test_an_empty_report_says_what_to_do() -> None:
    empty = content(plays=0)
    empty["summary"]["plays"]["total"] = 7
    (text,) = pages(pdf.render(empty | {"last_played": "2014-03-09"}))
    assert "The newest plays are from 9 Mar 2014. Choose a period that contains that day." in text
    assert "Choose another period." in pages(pdf.render(empty))[0]
    assert "Nobody has played this yet. " in pages(pdf.render(content(plays=0)))[0]


def test_a_table_is_on_one_page_unless_it_is_longer() -> None:
    report = content(tracks=16)
    texts = pages(pdf.render(report | dict.fromkeys(("top_albums", "top_artists"), report["top_tracks"])))
    for text in texts[1:]:
        assert text.count("Most played") == 1
        assert all(f"Track {each} " in text for each in range(16))
    long = pages(pdf.render(content(tracks=60)))
    assert sum("Track Plays Growth" in text for text in long) > 1  # its header is repeated
