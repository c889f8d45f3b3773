"""The pages of figures show the numbers of the API, to the last digit."""

import gzip
from codecs import BOM_UTF8
from typing import Any
from urllib.parse import parse_qsl

import pytest

from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.wording import quantity
from tests.support.html_page import HtmlPage
from tests.support.listening_world import EMPTY
from tests.support.oracle import DAY, LENGTHS
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]
PERIODS = {"7-days": "7d", "30-days": "30d", "90-days": "90d", "1-year": "1y"}


def shown(number: float | None) -> str:
    """Return a number as pages show it."""
    return EMPTY if number is None else f"{number:,}"


def growth(number: float | None) -> str:
    if number is None:
        return EMPTY
    sign = "+" if number > 0 else "\u2212" if number < 0 else ""
    return f"{sign}{abs(number):,.1f} %"


def blocks(data: Any) -> dict[str, str]:
    """Return the figures of an answer as the page marks them."""
    found = {
        f"{block}.{name}": value
        for block in ("plays", "listeners", "engagement")
        for name, value in data[block].items()
    }
    found |= {name: data[name] for name in ("followers", "tracks_count", "albums_count") if name in data}
    return {name: shown(value) for name, value in found.items()}


def ranked(rows: Any) -> list[list[str]]:
    return [
        [row["name"], plays_of(row, "period"), shown(row["listeners"]["unique"]), plays_of(row, "total")]
        for row in rows
    ]


def plays_of(row: Any, part: str) -> str:
    """Return the plays of a row, on an album with tracks of others too as those of the artist "of" all."""
    of_all, of_artist = row["plays"], row["plays"].get("of_artist", row["plays"])
    mixed = of_artist["total"] != of_all["total"]
    return f"{shown(of_artist[part])} of {shown(of_all[part])}" if mixed else shown(of_all[part])


def listening(data: Any) -> dict[str, str]:
    """Return the figures of listening as the page marks them."""
    names = ("new_listeners", "returning_listeners", "plays_per_listener", "skips", "plays_with_duration")
    found = {name: shown(data[name]) for name in names}
    known = ("mean", "median") if data["plays_with_duration"] else ("mean",)
    return found | {f"completion.{name}": shown(data["completion"][name]) for name in known}


def hidden_fields(page: HtmlPage, form: str) -> dict[str, str]:
    """Return the hidden fields of the last form of the page, which has the class `form`, without its token."""
    (start,) = (
        place for place, (tag, found) in enumerate(page.attributes) if tag == "form" and found.get("class") == form
    )
    fields = (found for tag, found in page.attributes[start:] if tag == "input" and found.get("type") == "hidden")
    return {found["name"] or "": found["value"] or "" for found in fields if found["name"] != "form_token"}


def is_recent(world: World, kind: str, number: int, period: str) -> bool:
    """Return whether the first play is later than the first day of the window before."""
    today, past = world.shared.clock.now() // DAY, world.made.past
    days = [today - play.at // DAY for play in past.plays if play.track in past.tracks(kind, number)]
    return bool(days) and max(days) < 2 * LENGTHS[period] - 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["artist", "album", "track"])
@pytest.mark.parametrize("period", PERIODS)
async def test_every_number_on_the_page_is_that_of_the_api(world: World, kind: str, period: str) -> None:
    for each in getattr(world.made, f"{kind}s"):
        page = await world.page(f"/insights/{kind}/{each}?period={period}&by=day")
        data = await world.api(f"{kind}s/{each}?period={period}")
        chart = await world.api(f"{kind}s/{each}/charts?timeframe={PERIODS[period]}")
        if not data["plays"]["total"]:
            assert (page.figures, page.tables) == ({}, [])
            continue

        assert blocks(data).items() <= page.figures.items()
        shown_growth = [growth(data["growth"][f"{name}_change"]) for name in ("plays", "listeners")]
        assert page.growth == ([] if is_recent(world, kind, each, period) else shown_growth)
        assert [row[1:3] for row in page.table("Day")] == [
            [shown(point["plays"]), shown(point["listeners"])] for point in chart["points"]
        ]
        dates = [found["datetime"] for tag, found in page.attributes if tag == "time"][: len(chart["points"])]
        assert dates == [point["date"] for point in chart["points"]]
        listened = await world.api(f"{kind}s/{each}/listening?period={period}")
        assert listening(listened).items() <= page.figures.items()
        hours = await world.api(f"{kind}s/{each}/hours?period={period}")
        found = [rows for rows in page.tables if rows[0][0] == "UTC"]
        if any(map(any, hours["hours"])):
            assert [row[1:] for row in found[0][1:]] == [[*map(shown, row)] for row in hours["hours"]]
        else:
            assert found == []
        for name, heading in (("top_tracks", "Track"), ("top_albums", "Album"), ("tracks", "Track")):
            if data.get(name):
                assert page.table(heading) == ranked(data[name])


async def test_no_two_figures_of_this_world_are_equal(world: World) -> None:
    """So that none can stand for another in the tests here."""
    for kind in ("artist", "album", "track"):
        page = await world.page(f"/insights/{kind}/{getattr(world.made, f'{kind}s')[0]}?period=90-days")
        numbers = [*page.figures.values(), *page.growth]
        assert sorted(numbers) == sorted(set(numbers))


async def test_realtime_is_that_of_the_api_on_the_page_and_when_it_is_refreshed(world: World) -> None:
    for track in world.made.tracks[:4]:  # the last one was never played
        data = await world.api(f"tracks/{track}/realtime")
        page = await world.page(f"/insights/track/{track}")
        refreshed = await world.page(f"/insights/track/{track}/realtime")

        for found in (page, refreshed):
            assert found.figures["active_listeners"] == shown(data["active_listeners"])
            assert found.figures["plays_last_hour"] == shown(data["plays_last_hour"])
        if data["recent_plays"]:
            assert refreshed.table("Played") == page.table("Played")
            assert [row[1] for row in page.table("Played")] == [
                play["listener_hash"][:8] for play in data["recent_plays"]
            ]
            times = [found["datetime"] for tag, found in refreshed.attributes if tag == "time"]
            assert times == [play["played_at"] for play in data["recent_plays"]]


async def test_a_page_leads_to_the_artists_and_the_album_that_the_account_manages(world: World) -> None:
    made = world.made
    pages: dict[str, list[tuple[int, ...]]] = {
        "artist": [()] * 3,
        "album": [(0,), (2, 0)],
        "track": [(0,), (0, 1), (1,), (2, 0, 1), (2,)],
    }
    for kind, credited in pages.items():
        for number, artists in enumerate(credited):
            page = await world.page(f"/insights/{kind}/{getattr(made, f'{kind}s')[number]}?period=7-days")
            expected = [f"/insights/artist/{made.artists[each]}?period=7-days" for each in artists]
            if kind == "track" and number in {0, 1, 3}:
                expected.append(f"/insights/album/{made.albums[number == 3]}?period=7-days")
            start = page.links().index("/insights?period=7-days") + 1
            assert page.links()[start : start + len(expected)] == expected


async def test_a_link_has_the_period_that_the_page_shows(world: World) -> None:
    page = await world.page(f"/insights/track/{world.made.tracks[0]}?from=2026-01-05&to=2026-01-09")
    (action,) = [found["action"] or "" for _, found in page.attributes if (found.get("action") or "").count("/share")]
    shared = await world.browser.post(action.partition("#")[0])
    (report,) = [target for target in HtmlPage(shared.body).links() if "/reports/" in target]
    table = (await world.page(report.removeprefix(world.browser.root))).table("Day")
    assert [row[0] for row in table] == [f"{day} Jan 2026" for day in range(5, 10)]


@pytest.mark.slow
async def test_milestones_are_those_of_the_api(world: World) -> None:
    for kind, ids in (("artist", world.made.artists), ("album", world.made.albums), ("track", world.made.tracks)):
        for each in ids:
            data = await world.api(f"{kind}s/{each}/milestones")
            page = await world.page(f"/insights/{kind}/{each}")
            times = [found["datetime"] for tag, found in page.attributes if tag == "time"]
            best = data["best_day"]
            expected = [reached["at"] for reached in data["plays"]] + ([best["date"]] if best else [])
            assert expected == times[len(times) - len(expected) :]
            for reached in data["plays"]:
                assert f"{reached['count']:,} plays on" in page.text
            assert not best or quantity(best["plays"], "play") in page.text.partition("Best day")[2]


async def test_an_album_is_compared_with_others_by_the_days_since_the_release(world: World) -> None:
    first, second = world.made.albums
    data = await world.api(f"albums/{first}/release?against={second}")
    page = await world.page(f"/insights/album/{first}")
    own, other = (each["points"] for each in data["releases"])

    assert (len(own), len(other)) == (20, 10)
    expected = [[shown(point["plays"]), shown(point["listeners"])] for point in other] + [[EMPTY, EMPTY]] * 10
    assert page.table("Day since release") == [
        [str(point["day"]), shown(point["plays"]), shown(point["listeners"]), *more]
        for point, more in zip(own, expected, strict=True)
    ]
    assert sum(point["plays"] for point in own) > sum(point["plays"] for point in other) > 0


async def test_the_day_that_is_not_over_is_marked_in_every_line(world: World) -> None:
    """Album 0 came out 19 days before the clock's day, album 1 nine: the line of each ends on another row."""
    page = await world.page(f"/insights/album/{world.made.albums[0]}?period=7-days")
    week, release = "Day", "Day since release"
    assert page.open_cells == [(week, 7, 1), (week, 7, 2), (release, 1 + 9, 3), (release, 1 + 19, 1)]
    assert "a dashed end is today" in page.text


async def test_collaborations_are_those_of_the_api(world: World) -> None:
    for artist in world.made.artists:
        data = await world.api(f"artists/{artist}/collaborations")
        page = await world.page(f"/insights/artist/{artist}")

        assert page.figures["total_collaborations"] == shown(data["total_collaborations"])
        found = next(rows for rows in page.tables if rows[0][1] == "Tracks together")
        assert found[1:] == [
            [each["name"], shown(each["tracks_count"]), shown(each["plays"])] for each in data["top_collaborators"]
        ]


async def test_the_thin_line_has_the_plays_of_the_days_before(world: World) -> None:
    artist = world.made.artists[0]
    month = (await world.page(f"/insights/artist/{artist}?period=30-days")).table("Day")
    longer = (await world.page(f"/insights/artist/{artist}?period=90-days")).table("Day")

    assert [row[3] for row in month] == [row[1] for row in longer[30:60]]
    assert [row[0].endswith(", not over") for row in month] == [False] * 29 + [True]


async def test_one_day_has_no_line_and_shows_its_numbers(world: World) -> None:
    path, folded = f"/insights/artist/{world.made.artists[0]}", []
    for period in ("today", "7-days"):
        page = await world.page(f"{path}?period={period}")
        folded.append(("thin line" in page.text, ("details", {"open": None}) not in page.attributes))
    assert folded == [(False, False), (True, True)]


async def test_a_shorter_month_before_leaves_its_last_days_empty(world: World) -> None:
    """March has three days more than February 2026."""
    track = world.made.tracks[0]
    march = (await world.page(f"/insights/track/{track}?from=2025-03-01&to=2025-03-31")).table("Day")
    february = (await world.page(f"/insights/track/{track}?period=2025-02")).table("Day")

    assert [row[3] for row in march] == [row[1] for row in february] + [EMPTY] * 3
    assert not any("not over" in row[0] for row in march)


async def test_all_time_begins_with_the_first_play_and_has_no_growth(world: World) -> None:
    path = f"/insights/artist/{world.made.artists[0]}"
    page = await world.page(f"{path}?period=all&by=day")

    periods = ["7-days", "30-days", "90-days", "1-year", "last-week", "this-month", "last-month", "all", "2026-03"]
    links = [link for link in page.links() if link.startswith(f"{path}?")]
    assert {f"{path}?period={each}" for each in ("2025-Q4", "2025", "2026-W09", "2026-W01")} <= {*links}
    assert links[:9] == [f"{path}?period={each}" for each in periods]
    assert " 7 days 30 days 90 days 1 year Last week This month Last month All time From to" in page.text
    assert page.growth == []
    assert page.figures["plays.period"] == page.figures["plays.total"]
    assert page.table("Day")[0][1] != "0"
    assert all(len(row) == 3 for row in page.table("Day"))


@pytest.mark.slow
async def test_a_period_of_decades_begins_with_the_first_play(world: World) -> None:
    track = world.made.tracks[0]
    every = await world.page(f"/insights/track/{track}?from=1930-01-01&to=2026-03-01&by=day")
    assert every.table("Day")[0][1] != "0"
    whole = await world.page(f"/insights/track/{track}?period=all&by=day")
    assert [row[:3] for row in every.table("Day") if row[1] != "0"] == [
        row[:3] for row in whole.table("Day") if row[1] != "0"
    ]
    quiet = await world.page(f"/insights/track/{track}?from=1930-01-01&to=1990-03-01&by=day")
    assert (len(quiet.table("Day")), quiet.table("Day")[-1][0]) == (366, "1 Mar 1990")


async def test_a_search_finds_artists_albums_and_tracks_of_the_account(world: World) -> None:
    found = await world.page("/insights?q=TRACK+3&period=7-days")
    assert f"/insights/track/{world.made.tracks[3]}?period=7-days" in found.links()
    assert len([link for link in found.links() if "/insights/track/" in link]) == 1
    track = await world.api(f"tracks/{world.made.tracks[3]}?period=7-days")
    plays = [shown(track["plays"][name]) for name in ("period", "total")]
    assert found.table("Track") == [["Track 3", "Artist 2, Artist 0, Artist 1", *plays]]
    artist = await world.api(f"artists/{world.made.artists[1]}?period=7-days")
    plays = [shown(artist["plays"][name]) for name in ("period", "total")]
    assert (await world.page("/insights?q=artist+1&period=7-days")).table("Artist") == [["Artist 1", *plays]]
    assert "has “nothing” in its name" in (await world.page("/insights?q=nothing")).text


async def test_results_page_on(world: World) -> None:
    def fill() -> list[str]:
        names = [f"Nocturne {'x' * length}" for length in range(1, 46)]
        for name in names:
            track = Track.create(name=name, duration=1, created_at=0).id
            TrackArtist.create(track=track, artist=world.made.artists[0], position=0)
        return names

    names = world.shared.store.write(fill).result()
    path, seen = "/insights?q=nocturne&period=7-days", []
    for number in (1, 2, 3):
        page = await world.page(path)
        seen += [row[0] for row in page.table("Track")]
        links = {found["rel"]: found["href"] for tag, found in page.attributes if tag == "a" and found.get("rel")}
        assert set(links) == {*(["prev"] if number > 1 else []), *(["next"] if number < 3 else [])}
        path = links.get("next") or ""
    assert seen == names
    assert links["prev"] == "/insights?period=7-days&q=nocturne&page=2"
    assert "There are no more results for “nocturne”" in (await world.page("/insights?q=nocturne&page=4")).text
    for wrong in ("page=0", "page=51", "page=x", "to=x", "by=x"):
        answer = await world.browser.get(f"/insights?q=nocturne&{wrong}")
        assert answer.status == 422
        assert f"{wrong.partition('=')[0].capitalize()}: Must be " in HtmlPage(answer.body).text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("period=2025-13", "period", "'2025-13' is not a period"),
        ("period=2026-W54", "period", "is not a week. The ISO weeks of 2026 are 2026-W01 to 2026-W53."),
        ("from=2026-02-30&to=2026-03-01", "from", "There is no such day."),
        ("from=2026-02-01", "to", "required with from"),
        ("to=2026-03-02&from=2026-03-01", "to", "Must not be after today"),
        ("from=2026-02-09&to=2026-02-08", "from", "Must not be after the last day."),
    ],
)
async def test_a_period_that_is_not_possible_stays_on_its_page_with_the_error_beside_the_field(
    world: World, query: str, field: str, message: str
) -> None:
    made, typed = world.made, dict(parse_qsl(query))
    paths = [
        "/insights",
        *(f"/insights/{kind}/{getattr(made, f'{kind}s')[0]}" for kind in ("artist", "album", "track")),
    ]
    for path in paths:
        answer = await world.browser.get(f"{path}?{query}")
        assert answer.status == 422
        page, usual = HtmlPage(answer.body), await world.page(path)
        assert message in page.text
        assert page.figures == usual.figures
        assert page.tables == usual.tables
        dates = {found["name"] or "": found for tag, found in page.attributes if found.get("type") == "date"}
        for name in ("from", "to"):
            assert dates[name]["value"] == typed.get(name, dates[name]["value"])
            assert ("aria-invalid" in dates[name]) == (name == field)
        if field in dates:
            assert {"class": "error", "id": dates[field]["aria-describedby"]} in [found for _, found in page.attributes]
    found = HtmlPage((await world.browser.get(f"/insights?q=track&{query}")).body)
    assert f"/insights/track/{made.tracks[0]}?period=7-days" in found.links()  # the search goes on
    accepting = await world.browser.get(f"/insights?{query}", Accept="application/json")
    assert list(accepting.json["errors"]) == [field]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["artist", "album", "track"])
async def test_the_downloads_of_a_page_are_of_its_subject_alone(world: World, kind: str) -> None:
    client = world.shared.client.holding(world.made.token)
    each = {"artist": world.made.artists, "album": world.made.albums, "track": world.made.tracks}[kind][1]
    page = await world.page(f"/insights/{kind}/{each}?period=90-days")
    fields = hidden_fields(page, "downloads")
    assert fields == {"period": "90-days", f"{kind}_id": str(each)}
    assert f"Only {kind.capitalize()} 1, " in page.text
    assert "Everything you manage" not in page.text
    for form in ("csv", "json", "xlsx", "pdf"):
        answer = await world.browser.post(f"/insights/export/{form}", fields)
        sent = {"period": "90-days", f"{kind}_id": each}
        expected = await client.post(f"{INSIGHTS}/export/{form}", sent)
        assert (answer.status, answer.body) == (200, BOM_UTF8 * (form == "csv") + expected.body)
        assert f"{kind}-{each}-{kind}-1-" in answer.headers["Content-Disposition"]

    everything = await world.page("/insights?period=90-days")
    assert hidden_fields(everything, "downloads") == {"period": "90-days"}
    assert "Everything you manage, " in everything.text
    for days in ({"period": "90-days"}, {"from": "2025-12-02", "to": "2026-03-01"}):
        answer = await world.browser.post("/insights/export/csv", days | {"type": f"{kind}s"})
        expected = await client.post(f"{INSIGHTS}/export/csv", {"period": "90-days", "type": f"{kind}s"})
        assert answer.body == BOM_UTF8 + expected.body
        assert answer.headers["Content-Length"] == str(len(answer.body))
        name = f'musicsvc-{kind}s-2025-12-02-to-2026-03-01.csv"'
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}'


async def test_a_download_of_what_another_account_manages_is_refused(world: World) -> None:
    mine = world.made.manager.user_id
    foreign = world.shared.store.read(lambda: Artist.get(Artist.manager != mine).id).result()
    for form in ("csv", "json", "xlsx", "pdf"):
        refused = await world.browser.post(f"/insights/export/{form}", {"artist_id": str(foreign)})
        assert (refused.status, "another account" in HtmlPage(refused.body).text) == (403, True)
    assert (await world.browser.post("/insights/export/pdf", {"album_id": "987654321"})).status == 404
    faulty = ({"type": "songs"}, {"period": "2027"}, {"from": "2026-01-01"}, {"from": "x", "to": "y"})
    for wrong in (*faulty, {"album_id": "x"}, {"album_id": "0"}, {"album_id": "1", "track_id": "1"}):
        assert (await world.browser.post("/insights/export/json", wrong)).status == 422


async def test_a_page_with_its_chart_weighs_less_than_100_kb(world: World) -> None:
    """With gzip, and with all files that the page loads, for the longest of the four periods."""
    answer = await world.browser.get(f"/insights/artist/{world.made.artists[0]}?period=1-year&by=day")
    page = HtmlPage(answer.body)
    loaded = [found.get("src") or found["href"] for tag, found in page.attributes if tag in {"script", "link", "img"}]
    files = {path: gzip.compress((await world.browser.get(path or "")).body) for path in loaded}
    weights = {"page": len(gzip.compress(answer.body))} | {path: len(body) for path, body in files.items()}

    assert len(page.table("Day")) == 365
    assert len(files) >= 7
    assert sum(weights.values()) < 100_000, weights


@pytest.mark.parametrize(("released", "words"), [("2026-02-27", "since"), ("2026-01-31", "in the first 28 days after")])
async def test_an_album_without_plays_since_its_release_says_so(world: World, released: str, words: str) -> None:
    made, now = world.made, world.shared.clock.now()

    def unit() -> int:
        artist = Artist.create(name="New", manager=made.manager.user_id, created_at=now).id
        album = Album.create(name="New", release_date=released, created_at=now).id
        track = Track.create(name="New", duration=1, album=album, created_at=now).id
        AlbumArtist.create(album=album, artist=artist, position=0)
        TrackArtist.create(track=track, artist=artist, position=0)
        made.add_plays([(track, now - 60 * DAY, "early")])
        return int(album)

    page = await world.page(f"/insights/album/{world.shared.store.write(unit).result()}")
    assert f"There were no plays {words} the release on" in page.text
