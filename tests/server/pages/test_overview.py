"""The overview of an account and its tables show the figures of reports and exports, in every order."""

import csv
import io
import re
from codecs import BOM_UTF8
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl

import pytest

from musicsvc.clock import HOUR, MINUTE, SECOND
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.editing import deletions
from musicsvc.store.models import Album, AlbumArtist, Artist, Play, Track, TrackArtist
from tests.support.html_page import HtmlPage
from tests.support.page_client import add_account, add_session
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

pytestmark = on_shared_loop

PERIODS = ("7-days", "90-days", "1-year")
QUERIES = ("period=7-days", "period=90-days", "from=2025-11-01&to=2025-12-31")
KINDS = ("artists", "albums", "tracks")
COLUMNS = ("plays_period", "plays_change", "listeners_period", "listeners_change", "likes", "reposts", "plays_total")
Rows = list[dict[str, Any]]


async def export(world: World, kind: str, **body: Any) -> Any:
    """Return the data of a JSON export, or of the report, of everything that the account manages."""
    client = world.shared.client.holding(world.made.token)
    name = "report" if kind == "report" else "json"
    sent = body if kind == "report" else body | {"type": kind}
    data = (await client.post(f"{INSIGHTS}/export/{name}", sent)).json["data"]
    if kind == "tracks":
        assert data["rows"].pop()["track_id"] is None  # of deleted tracks
    return data


def number(text: str) -> int:
    return int(text.replace(",", "").replace("\u2212", "-"))


def shown(row: dict[str, Any], column: str) -> str:
    """Return the value of a row of an export as a table shows it."""
    value = row[column]
    if not column.endswith("change"):
        return f"{value:,}"
    if value is None:
        return "\u2013"
    return f"{'+' if value > 0 else chr(0x2212) if value < 0 else ''}{abs(value):,.1f} %"


@pytest.mark.parametrize("period", PERIODS)
async def test_the_overview_has_the_figures_of_the_report(world: World, period: str) -> None:
    report = await export(world, "report", period=period, include_charts=True)
    page = await world.page(f"/insights?period={period}&by=day")
    blocks = {
        f"{block}.{name}": report["summary"][block][name]
        for block, name in (
            ("plays", "total"),
            ("plays", "period"),
            ("listeners", "total"),
            ("listeners", "unique"),
            ("engagement", "likes"),
            ("engagement", "reposts"),
        )
    }
    assert {name: number(page.figures[name]) for name in blocks} == blocks
    assert [[number(cell) for cell in row[1:3]] for row in page.table("Day")] == [
        [point["plays"], point["listeners"]] for point in report["charts"]["points"]
    ]
    by_month = (await world.page(f"/insights?period={period}&by=month")).table("Month")
    assert sum(number(row[1]) for row in by_month) == report["summary"]["plays"]["period"]
    assert len({row[0] for row in by_month}) == len(by_month) > 1


@pytest.mark.parametrize("query", QUERIES)
async def test_movers_are_the_tracks_whose_plays_changed_most(world: World, query: str) -> None:
    tracks = await export(world, "tracks", **dict(parse_qsl(query)))
    changes = {}
    for row in tracks["rows"]:
        before = row["plays_period"] if row["plays_change"] is None else None
        chart = await world.api(f"tracks/{row['track_id']}?{query}")
        earlier = chart["plays"]["period"] / (1 + chart["growth"]["plays_change"] / 100) if before is None else 0
        if change := row["plays_period"] - round(earlier):
            changes[row["track"]] = change
    page = await world.page(f"/insights?{query}")
    found = re.findall(r"(Track \d+) [^+\u2212]*?([+\u2212][\d,]+) to ([\d,]+) play", page.text)
    assert {name: number(change) for name, change, _ in found} == changes
    sizes = [number(change) for _, change, _ in found]
    up = [size for size in sizes if size > 0]
    assert sizes == [*sorted(up, reverse=True), *sorted(size for size in sizes if size < 0)]
    plays = {row["track"]: row["plays_period"] for row in tracks["rows"]}
    assert all(plays[name] == number(shown) for name, _, shown in found)


@pytest.mark.parametrize("query", QUERIES)
async def test_milestones_are_those_that_tracks_reached_in_the_period(world: World, query: str) -> None:
    period = (await world.api(f"tracks/{world.made.tracks[0]}?{query}"))["period"]
    reached = {number: await world.api(f"tracks/{track}/milestones") for number, track in enumerate(world.made.tracks)}
    wanted = [
        (f"Track {number}", f"{each['count']:,}", each["at"])
        for number, of in reached.items()
        for each in of["plays"]
        if period["start"] <= each["at"][:10] <= period["end"]
    ]
    page = await world.page(f"/insights?{query}")
    times = [found["datetime"] for tag, found in page.attributes if tag == "time"]
    found = re.findall(r"(Track \d+) (?:Artist \d(?:, )?)+ ([\d,]+) plays \d+ \w+ \d{4}", page.text)
    assert sorted(found) == sorted(each[:2] for each in wanted)
    assert {at for _, _, at in wanted} <= {*times}


async def test_the_overview_says_that_there_are_more_milestones(world: World) -> None:
    now, user = world.shared.clock.now(), add_account(world.shared, "many@label.test")

    def play(first: int, end: int) -> None:
        artist = Artist.get_or_create(name="Many", manager=user, defaults={"created_at": 1})[0]
        for each in range(first, end):
            track = Track.create(name=f"No. {each}", duration=1, created_at=1)
            TrackArtist.create(track=track, artist=artist, position=0)
            world.made.add_plays((track.id, now - each * MINUTE, str(fan)) for fan in range(100))

    own, world.browser.cookies = world.browser.cookies, {"musicsvc": add_session(world.shared, user)}
    for first, end in ((0, 9), (9, 10)):  # with that of all together, 10 and 11 milestones
        world.shared.store.write(partial(play, first, end)).result()
        listed = (await world.page("/insights")).text.partition("Milestones")[2].partition("Releases")[0]
        assert (listed.count(" plays "), "There are more in this period." in listed) == (10, end > 9)
    world.browser.cookies = own


async def test_the_newest_plays_are_also_those_of_deleted_tracks(world: World) -> None:
    track, *_ = world.made.tracks
    now = world.shared.clock.now()

    def unit() -> None:
        Play.delete().execute()
        world.made.add_plays((track, now - each * MINUTE, "new") for each in range(3))
        world.made.add_plays((world.made.tracks[1], now - each * HOUR, "new") for each in range(1, 11))
        deletions.remove_tracks([track])

    world.shared.store.write(unit).result()
    newest = (await world.page("/insights")).text.partition("Newest plays")[2]
    assert newest.count("A deleted track") == 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_table_is_sorted_by_each_column_and_its_csv_has_the_same_rows(world: World, kind: str) -> None:
    noun = kind.removesuffix("s")
    rows: Rows = (await export(world, kind, period="90-days"))["rows"]
    by_id = {row[f"{noun}_id"]: row for row in rows}
    for column in (*COLUMNS, "listeners_total", "name"):
        for sign in ("", "-"):
            query = f"period=90-days&sort={sign}{column}"
            page = await world.page(f"/insights/{kind}?{query}")
            table = page.table(noun.capitalize() + (" \u25be" if sign else " \u25b4") * (column == "name"))
            ids = [
                int(str(found["href"]).split("/")[3].split("?")[0])
                for tag, found in page.attributes
                if tag == "a" and re.fullmatch(rf"/insights/{noun}/\d+\?period=90-days", found.get("href") or "")
            ]
            values = [by_id[each].get(column, by_id[each][noun]) for each in ids]
            known = [value for value in values if value is not None]
            assert values == [*known, *[None] * (len(values) - len(known))]
            assert all(one >= other if sign else one <= other for one, other in pairwise(known))
            assert sorted(ids) == sorted(by_id)
            assert f"{len(by_id)} {kind}" in page.text
            first = 1 + (kind != "artists")
            assert [row[first:] for row in table] == [
                [
                    cell if cell.startswith("first plays ") else shown(by_id[each], name)
                    for name, cell in zip(COLUMNS, row[first:], strict=True)
                ]
                for each, row in zip(ids, table, strict=True)
            ]
            answer = await world.browser.get(f"/insights/{kind}/csv?{query}")
            lines = [*csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"), newline=""))]
            assert [int(line[f"{noun}_id"]) for line in lines] == ids
            assert lines == [
                {name: "" if value is None else str(value) for name, value in by_id[each].items()} for each in ids
            ]


async def test_a_table_finds_by_name_and_pages_on(world: World) -> None:
    def fill() -> None:
        for number in range(1, 46):
            album = Album.create(name=f"Suite {number:02}", created_at=0, upc=f"{number:012}").id
            AlbumArtist.create(album=album, artist=world.made.artists[0], position=0)

    world.shared.store.write(fill).result()
    path, names = "/insights/albums?q=suite&sort=name", []
    for page_number in (1, 2, 3):
        page = await world.page(path)
        assert "45 albums with \u201csuite\u201d" in page.text
        assert f"Page {page_number} of 3" in page.text
        names += [row[0] for row in page.table("Album \u25b4")]
        links = {found["rel"]: found["href"] for tag, found in page.attributes if tag == "a" and found.get("rel")}
        path = links.get("next") or path
    assert names == [f"Suite {number:02}" for number in range(1, 46)]
    file = await world.browser.get("/insights/albums/csv?q=suite&sort=name")
    assert [row["album"] for row in csv.DictReader(io.StringIO(file.body.decode("utf-8-sig")))] == names
    assert file.body.startswith(BOM_UTF8)
    part = await world.browser.get(path, **{"HX-Request": "true", "HX-Request-Type": "partial"})
    assert part.body.lstrip().startswith(b'<div id="found"')
    assert b'href="/insights/albums?q=suite&amp;sort=name&amp;period=90-days"' in part.body
    assert b'name="sort" value="name" form="search"' in part.body
    assert [part.body.count(b'id="%s"' % name) for name in (b"sort-name", b"previous", b"next")] == [1, 1, 0]  # focus
    assert "There are no more rows" in (await world.page("/insights/albums?q=suite&page=9")).text
    found = [(await world.page(f"/insights/{kind}?q=zzz")).text for kind in ("tracks", "artists")]
    assert "None of your tracks has \u201czzz\u201d" in found[0]
    assert ["in name or code" in each for each in found] == [True, False]
    for wrong in ("sort=id", "sort=", "page=0", "page=x", "q=" + "x" * 256, "by=hour"):
        assert (await world.browser.get(f"/insights/tracks?{wrong}")).status == 422


async def test_who_manages_nothing_sees_what_to_do(world: World) -> None:
    shared = world.shared
    kept = dict(world.browser.cookies)
    world.browser.cookies["musicsvc"] = add_session(shared, add_account(shared, "nobody@label.test"))
    page = HtmlPage((await world.browser.get("/insights")).body)
    assert "You manage no artist yet" in page.text
    assert "/" in page.links()
    assert "/api/v1" not in page.text
    assert "You have no tracks yet." in HtmlPage((await world.browser.get("/insights/tracks")).body).text
    assert (await world.browser.get("/insights/artists/csv")).body.count(b"\n") == 1
    world.browser.cookies.update(kept)


@pytest.mark.slow
async def test_periods_step_to_the_one_before_and_after(world: World) -> None:
    """It is 1 March 2026."""
    for query, earlier, later in (
        ("period=7-days", "from=2026-02-16&to=2026-02-22", None),
        ("period=this-month", "period=2026-02", None),
        ("period=2026-Q1", "period=2025-Q4", None),
        ("period=2025", "period=2024", "period=2026"),
        ("period=last-week", "period=2026-W07", "period=2026-W09"),
        ("period=2026-W09", "period=2026-W08", None),
        ("period=last-quarter", "period=2025-Q3", "period=2026-Q1"),
        ("period=last-year", "period=2024", "period=2026"),
        ("from=2025-11-01&to=2025-11-30", "period=2025-10", "period=2025-12"),
        ("from=2026-02-20&to=2026-02-26", "from=2026-02-13&to=2026-02-19", "from=2026-02-27&to=2026-03-01"),
        ("period=all", None, None),
    ):
        page = await world.page(f"/insights/artist/{world.made.artists[0]}?{query}")
        links = {
            found["rel"]: str(found["href"]).split("?")[1]
            for tag, found in page.attributes
            if tag == "a" and found.get("rel")
        }
        assert (links.get("prev"), links.get("next")) == (earlier, later)


async def test_a_mover_of_thousands_has_a_comma_in_both_numbers(world: World) -> None:
    made, now = world.made, world.shared.clock.now()
    plays = [(made.tracks[4], now - each * SECOND, f"of thousands {each}") for each in range(1000)]
    world.shared.store.write(lambda: made.add_plays(plays)).result()
    assert "+1,000 to 1,000 plays" in (await world.page("/insights?period=today")).text
