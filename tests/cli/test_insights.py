"""`musicsvc insights`: the figures of the API in the terminal, and how they came about."""

import re
from functools import partial
from typing import Any

import pytest
from peewee import SQL

from musicsvc.cli import listening
from musicsvc.clock import DAY, MINUTE, SECOND, Clock, isoformat, parse, to_date
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play, PlayCount, PlayProgress
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import counts
from tests.cli.conftest import Json, Run
from tests.support.listening_world import Catalog, catalog

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@pytest.fixture
def now() -> int:
    return Clock().now()


@pytest.fixture
def made(store: Store, now: int) -> Catalog:
    """Track 0 by five listeners on each of the last 40 days, two of them the same; it is not midnight."""
    heard = [
        (0, day, name) for day in range(40) for name in (f"a{day % 10}", f"b{day % 3}", "daily", "always", f"c{day}")
    ]

    def fill() -> Catalog:
        made = catalog(now)
        made.add_plays([(made.tracks[track], now - day * DAY - MINUTE, name) for track, day, name in heard])
        made.give([(made.tracks[0], now - DAY), (made.tracks[1], now)], [(made.tracks[0], now - 39 * DAY)])
        return made

    return store.write(fill).result()


@pytest.mark.parametrize(("kind", "number"), [("track", 0), ("album", 0), ("artist", 1)])
@pytest.mark.parametrize("period", ["7-days", "1-year"])
def test_show_prints_what_the_endpoint_answers(
    ask: Json, made: Catalog, now: int, kind: str, number: int, period: str
) -> None:
    own = {"track": made.tracks, "album": made.albums, "artist": made.artists}[kind][number]

    found = ask("insights", "show", kind, str(own), "--period", period)

    expected: Any = {
        "track": lambda: made.past.figures("track", own, period, now),
        "album": lambda: made.past.album(own, period, now),
        "artist": lambda: made.past.artist(own, period, now, followers=0),
    }[kind]()
    assert found.pop("listening")["period"] == found.pop("hours")["period"] == expected["period"]
    assert found.pop("milestones").keys() == {"plays", "best_day"}
    assert found == {"kind": kind, "id": own, "name": f"{kind.capitalize()} {number}"} | expected


def test_show_draws_the_days(run: Run, made: Catalog, now: int) -> None:
    page = run("insights", "show", "album", str(made.albums[0])).stdout

    assert f"{made.albums[0]}: Album 0" in page
    assert "30-days: " in page
    first = f"{to_date(now - 39 * DAY - MINUTE):%-d %b %Y}"
    assert f"150 (first plays {first}); 200 of all time" in page
    week = run("insights", "show", "album", str(made.albums[0]), "--period", "7-days").stdout
    assert "35 (+0.0 % vs previous 7 days); 200 of all time" in week
    assert "█" * 30 in page
    all_time = run("insights", "show", "album", str(made.albums[0]), "--period", "all").stdout
    assert re.search(r"^plays +200; 200 of all time$", all_time, re.MULTILINE)
    assert "Track 1" in page
    of_artist = run("insights", "show", "artist", str(made.artists[0])).stdout
    assert [line for line in of_artist.splitlines() if line.startswith("top ")] == ["top tracks", "top albums"]


def test_explain_counts_the_same_from_single_plays(ask: Json, made: Catalog, now: int) -> None:
    for kind, own in (("track", made.tracks[0]), ("album", made.albums[0]), ("artist", made.artists[0])):
        found = ask("insights", "explain", kind, str(own), "--period", "7-days")
        figures = made.past.figures(kind, own, "7-days", now)
        chart = made.past.chart(kind, own, "7d", now)
        assert found["equal"] is True
        assert found["differences"] == []
        assert found["served"] == figures
        assert found["counted"]["period"] == {
            "plays": figures["plays"]["period"],
            "listeners": figures["listeners"]["unique"],
        }
        days = [{name: point[name] for name in ("date", "plays", "listeners")} for point in chart["points"]]
        assert found["days"] == days
        assert found["growth"]["plays"] == {"formula": "(35 - 35) * 100 / 35", "percent": 0.0}
        assert found["window"]["days"] == 7
        elapsed = parse(found["window_before"]["ends_at"]) - parse(found["window_before"]["starts_at"])
        assert 6 * DAY <= elapsed - (now % DAY // SECOND * SECOND) <= 6 * DAY + MINUTE
        assert found["window_before"]["starts_at"] == isoformat(parse(found["window"]["starts_at"]) - 7 * DAY)
        assert found["plays_kept_from"] is None


def test_explain_shows_every_step(run: Run, made: Catalog) -> None:
    page = run("insights", "explain", "track", str(made.tracks[0]), "--period", "30-days").stdout

    assert "30 days, " in page
    assert "30 with plays, 0 without" in page
    assert "150 plays; 150 listeners, once per day" in page
    assert "(150 - 50) * 100 / 50 = 200.0 %" in page
    assert "1 and 0 given in the window and not withdrawn" in page
    assert page.endswith("The API returns the same figures.\n")
    assert not re.search(r'^[\[{"]', page, re.MULTILINE)  # nothing is JSON without --json


def test_explain_says_which_plays_are_not_counted_as_text_and_as_json(run: Run, ask: Json, made: Catalog) -> None:
    line = ("insights", "explain", "track", str(made.tracks[0]))

    note = ask(*line)["not_stored"]

    assert "refused plays" in note
    assert re.search(rf"^single plays +{re.escape(note)}$", run(*line).stdout, re.MULTILINE)


def test_explain_of_what_was_never_played(run: Run, made: Catalog) -> None:
    page = run("insights", "explain", "track", str(made.tracks[4])).stdout

    assert "0 with plays, 30 without" in page
    assert "none, as the window before is empty = null" in page
    assert "The API returns the same figures." in page


def test_explain_finds_a_figure_that_does_not_equal_the_plays(
    run: Run, ask: Json, store: Store, made: Catalog, now: int
) -> None:
    wrong = PlayCount.update(plays=PlayCount.plays + 1).where(SQL(counts.OF_DAY) == now // DAY)
    store.write(partial(wrong.execute)).result()
    line = ("insights", "explain", "track", str(made.tracks[0]), "--period", "7-days")

    page = run(*line).stdout

    assert "plays in the window: served 36, counted 35" in page
    assert "growth of plays: served 2.9, counted 0.0" in page
    assert "plays of all time: served 201, counted 200" in page
    assert "musicsvc plays recount" in page
    found = ask(*line)
    assert found["equal"] is False
    assert {"figure": "plays in the window", "served": 36, "counted": 35} in found["differences"]


def test_explain_leaves_out_what_is_no_longer_kept(ask: Json, run: Run, store: Store, made: Catalog, now: int) -> None:
    kept = now // DAY - 9
    store.write(lambda: PlayProgress.update(kept_from=kept).execute()).result()
    store.write(lambda: Play.delete().where(Play.slot < kept * DAY // SLOT).execute()).result()
    line = ["insights", "explain", "album", str(made.albums[0]), "--period"]
    gone = f"cannot be recounted: plays before {to_date(kept * DAY)} were deleted"

    def lines(period: str) -> dict[str, str]:
        found = [each.split("  ", 1) for each in run(*line, period).stdout.splitlines()]
        return {name: text.strip() for name, text in (each for each in found if len(each) == 2)}

    week = ask(*line, "7-days")
    assert week["equal"] is True
    assert week["served"]["growth"]["plays_change"] == 0.0
    assert week["counted"]["period"]["plays"] == 35
    assert week["counted"]["before"] is week["counted"]["all_time"] is None
    assert week["served"]["plays"]["total"] == 200
    assert week["plays_kept_from"] is not None
    assert week["not_recounted"] == gone
    assert week["growth"]["plays"] == {"formula": gone, "percent": 0.0}
    counted = week["listening"]["counted"]
    assert counted["listening"]["new_listeners"] is counted["milestones"] is counted["release"] is None
    assert counted["listening"]["plays_per_listener"] == week["listening"]["served"]["listening"]["plays_per_listener"]
    shown = lines("7-days")
    assert shown["whole window"].startswith("35 plays; ")
    assert {shown[name] for name in ("window before", "all time", "new listeners", "best day")} == {gone}
    assert shown["growth of plays"] == f"{gone}; the API returns 0.0 %"
    assert run(*line, "7-days").stdout.endswith("The API returns the same figures, as far as they can be recounted.\n")

    month = ask(*line, "30-days")["listening"]
    assert (month["counted"]["listening"], month["plays_without_duration"]) == (None, None)
    shown = lines("30-days")
    assert "older plays were deleted" in shown["kept from"]
    assert {shown[name] for name in ("days", "sum of the days", "whole window", "skips", "not in skips")} == {gone}
    assert run(*line, "30-days").stdout.endswith("No figure was compared, because plays of this window were deleted.\n")
    assert lines("all")["growth of plays"] == "none, as the window before is empty = null"


def test_what_is_not_there_is_named(run: Run) -> None:
    for kind in ("track", "album", "artist"):
        assert run("insights", "show", kind, "999", expect=1).stderr == f"Error: There is no {kind} 999.\n"
    assert run("insights", "explain", "artist", "999", expect=1).stderr == "Error: There is no artist 999.\n"
    run("insights", "show", "song", "1", expect=2)
    run("insights", "show", "track", "1", "--period", "week", expect=2)
    run("insights", "show", "track", "0", expect=2)


@pytest.mark.parametrize(
    ("numbers", "width", "line"),
    [
        ([], 10, ""),
        ([0, 0, 0], 10, "▁▁▁"),
        ([5], 10, "█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 10, "▁▃▄▅▆▇██"),
        ([1, 1000], 10, "▂█"),
        ([0, 0, 8, 8], 2, "▁█"),
        ([1, 1, 1, 1, 1], 3, "███"),
    ],
)
def test_a_sparkline_tells_little_from_nothing_and_fits(numbers: list[int], width: int, line: str) -> None:
    assert listening.draw(numbers, width) == line


def test_a_sparkline_is_plain_where_there_are_no_bars() -> None:
    assert listening.draw([0, 1, 8], 10, "ascii") == "_.#"


def test_periods_have_names_and_dates(ask: Json, made: Catalog, now: int) -> None:
    today = to_date(now)
    month, year = f"{today:%Y-%m}", f"{today:%Y}"
    line = ("insights", "show", "track", str(made.tracks[0]))
    starts = {}
    for period in ("today", "yesterday", "this-month", "last-month", month, f"{year}-Q1", year, "2020", "all"):
        found = ask(*line, "--period", period)["period"]
        assert found["name"] == period
        starts[period] = found["start"]
    assert starts["today"] == today.isoformat()
    assert starts["this-month"] == starts[month] == f"{month}-01"
    assert (starts[year], starts["2020"]) == (f"{year}-01-01", "2020-01-01")
    assert starts["all"] == to_date(now - 39 * DAY - MINUTE).isoformat()

    first, last = to_date(now - 20 * DAY), to_date(now - 11 * DAY)
    dates = (first.isoformat(), last.isoformat())
    expected = made.past.figures("track", made.tracks[0], dates, now)
    assert expected["plays"]["period"] > 0
    found = ask(*line, "--from", dates[0], "--to", dates[1])
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--period", "8-days"], "'8-days' is not a period. Use 7-days"),
        (["--period", "2999-01"], "2999-01 begins after today."),
        (["--from", "2026-01-01"], "Use --from and --to together."),
        (["--from", "2026-01-02", "--to", "2026-01-01"], "Must not be after `to`."),
        (["--from", "2026-01-01", "--to", "2999-01-01"], "Must not be after today"),
        (["--from", "2026-01", "--to", "2026-01-31"], "'2026-01' is not a date such as 2026-01-31."),
        (
            ["--period", "today", "--from", "2026-01-01", "--to", "2026-01-31"],
            "Use either --period or --from and --to.",
        ),
    ],
)
def test_a_period_that_is_none_is_wrong_usage(run: Run, made: Catalog, options: list[str], message: str) -> None:
    track = str(made.tracks[0])
    for line in (["insights", "show", "track", track], ["insights", "explain", "track", track], ["export", "report"]):
        done = run(*line, *options, expect=2)
        assert message in " ".join(done.stderr.replace("│", " ").split())
