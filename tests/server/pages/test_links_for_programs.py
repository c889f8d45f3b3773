"""Share links that programs read: as CSV, as JSON, as a badge, with the figures of the page and of the API."""

import asyncio
import csv
import re
from io import StringIO
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from musicsvc.clock import MINUTE
from musicsvc.config import Limits, Settings
from musicsvc.store.accounts import users
from musicsvc.store.dashboards import report_links, shared_tables
from musicsvc.store.editing import merging
from musicsvc.store.models import Artist, ReportLink
from tests.server.pages.test_figures import shown
from tests.support.databases import Template
from tests.support.html_page import HtmlPage
from tests.support.listening_world import Catalog, fill
from tests.support.page_client import add_session, page_client
from tests.support.serving import Answer
from tests.support.shared_server import on_shared_loop, shared_server
from tests.support.signed_in import World

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]
DAYS = "from=2026-01-15&to=2026-02-20"
PROGRAMS = {"days": "9", "programs": "on"}
ODD = '=1+1, "x" <&>\' \u05e9\u05dc\u05d5\u05dd \u202e'
SVG = "{http://www.w3.org/2000/svg}"


async def share(world: World, path: str, **form: str) -> str:
    """Create a link that programs may read, and return its path."""
    answer = await world.browser.post(f"/insights/{path}", PROGRAMS | form)
    assert answer.status == 201, answer.body
    return str(re.findall(r"/reports/[\w.-]+\.[\w-]{22}", answer.body.decode())[0])


async def read(world: World, path: str, **headers: str) -> Answer:
    """Return what a program gets, which has neither a session nor a token."""
    return await world.shared.client.holding(None).get(path, headers=headers)


def rows(answer: Answer) -> list[list[str]]:
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return [*csv.reader(StringIO(answer.body.decode(), newline=""), strict=True)]


def do(world: World, unit: Any) -> Any:
    return world.shared.store.write(unit).result()


async def test_names_of_columns_never_change(world: World) -> None:
    made = world.made
    link = await share(world, f"artist/{made.artists[0]}/share?{DAYS}")
    compared = await share(world, f"compare/share?kind=track&ids={made.tracks[0]},{made.tracks[3]}&{DAYS}")
    heads = [(await read(world, f"{link}.csv{query}")).body.partition(b"\r\n")[0] for query in ("", "?table=days")]
    assert heads == [b'"date","plays","listeners","likes","reposts"'] * 2
    for path, head in (
        (f"{link}.csv?table=tracks", "track,artists,album,plays_period,listeners_period,isrc,upc,release_date"),
        (f"{link}.csv?table=albums", "album,artists,plays_period,listeners_period,upc,release_date"),
        (f"{compared}.csv", "subject,date,plays,listeners,likes,reposts"),
    ):
        (found, *_) = rows(await read(world, path))
        assert ",".join(found) == head
        as_json = (await read(world, path.replace(".csv", ".json"))).json
        assert [*as_json] == ["name", "period", "rows"]
        assert [*as_json["rows"][0]] == found


@pytest.mark.parametrize("kind", ["artist", "album", "track"])
async def test_days_are_those_of_the_api(world: World, kind: str) -> None:
    (subject, *_) = getattr(world.made, f"{kind}s")
    link = await share(world, f"{kind}/{subject}/share?{DAYS}")
    points = (await world.api(f"{kind}s/{subject}/charts?{DAYS}"))["points"]
    assert len(points) == 37
    answer = await read(world, f"{link}.json")
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json == {
        "name": f"{kind.capitalize()} 0",
        "period": {"name": "custom", "start": "2026-01-15", "end": "2026-02-20"},
        "rows": points,
    }
    head, *found = rows(await read(world, f"{link}.csv"))
    assert found == [[str(point[name]) for name in head] for point in points]
    plays = sum(point["plays"] for point in points)
    badge_of = await read(world, f"{link}.svg")
    assert badge_of.headers["Content-Type"] == "image/svg+xml"
    assert [each.text for each in ET.fromstring(badge_of.body).iter(f"{SVG}text")] == [  # noqa: S314 - our own
        f"{kind.capitalize()} 0",
        f"{plays:,} plays",
    ]


@pytest.mark.parametrize(("kind", "table"), [("artist", "tracks"), ("artist", "albums"), ("album", "tracks")])
async def test_tables_have_the_rows_of_the_page_and_the_cells_of_exports(world: World, kind: str, table: str) -> None:
    (subject, *_) = getattr(world.made, f"{kind}s")
    noun = table.removesuffix("s")
    link = await share(world, f"{kind}/{subject}/share?{DAYS}")
    page = HtmlPage((await read(world, link)).body)
    found = (await read(world, f"{link}.json?table={table}")).json["rows"]
    if table == "tracks":
        shown_on_page = [row[:3] for row in page.table(noun.capitalize())]
        assert [[row["track"], shown(row["plays_period"]), shown(row["listeners_period"])] for row in found] == (
            shown_on_page
        )
    dates = dict(zip(("from", "to"), ("2026-01-15", "2026-02-20"), strict=True))
    body = {"type": table, f"{kind}_id": subject, **dates}
    client = world.shared.client.holding(world.made.token)
    exported = (await client.post("producer-intelligence/insights/export/json", body)).json["data"]["rows"]
    by_name = {row[noun]: {name: row[name] for name in found[0]} for row in exported}
    assert found == [by_name[row[noun]] for row in found]
    assert {row["plays_period"] for row in found} != {0}
    lines = rows(await read(world, f"{link}.csv?table={table}"))
    assert lines[1:] == [["" if value is None else str(value) for value in row.values()] for row in found]


async def test_a_comparison_has_the_days_of_each(world: World) -> None:
    ids = [world.made.tracks[each] for each in (3, 0)]
    link = await share(world, f"compare/share?kind=track&ids={ids[0]},{ids[1]}&{DAYS}")
    points = [(await world.api(f"tracks/{each}/charts?{DAYS}"))["points"] for each in ids]
    found = (await read(world, f"{link}.json")).json
    assert found["name"] == "Track 3, Track 0"
    assert found["rows"] == [
        {"subject": name} | point for name, of in zip(("Track 3", "Track 0"), points, strict=True) for point in of
    ]
    answer = await read(world, f"{link}.svg")
    assert (answer.status, b"A comparison has no badge." in answer.body) == (404, True)
    answer = await read(world, f"{link}.csv?table=tracks")
    assert (answer.status, b"This link has no table tracks. It has days." in answer.body) == (422, True)


async def test_an_artist_without_tracks_has_tables_without_rows_and_days_without_plays(world: World) -> None:
    def add() -> int:
        created: int = Artist.create(name="Nobody yet", manager=world.made.manager.user_id, created_at=1).id
        return created

    link = await share(world, f"artist/{do(world, add)}/share?{DAYS}")
    for table in ("tracks", "albums"):
        assert rows(await read(world, f"{link}.csv?table={table}")) == [[*shared_tables.COLUMNS[table]]]
        assert (await read(world, f"{link}.json?table={table}")).json["rows"] == []
    days = rows(await read(world, f"{link}.csv"))[1:]
    assert [days[0], days[-1], len(days)] == [["2026-01-15", *"0000"], ["2026-02-20", *"0000"], 37]
    assert b">0 plays<" in (await read(world, f"{link}.svg")).body


async def test_another_table_is_refused(world: World) -> None:
    track = await share(world, f"track/{world.made.tracks[0]}/share?{DAYS}")
    album = await share(world, f"album/{world.made.albums[0]}/share?{DAYS}")
    for path, message in (
        (f"{track}.csv?table=plays", "Must be one of: 'days', 'tracks' or 'albums'."),
        (f"{track}.csv?table=", "Must be one of"),
        (f"{track}.csv?table=days&table=days", "Must be given only once."),
        (f"{track}.json?table=tracks", "This link has no table tracks. It has days."),
        (f"{album}.csv?table=albums", "This link has no table albums. It has days and tracks."),
    ):
        answer = await read(world, path)
        assert (answer.status, message in answer.body.decode()) == (422, True), (path, answer.body.decode())
    answer = await read(world, f"{track}.json?table=tracks", Accept="*/*")
    assert answer.json["errors"] == {"table": "This link has no table tracks. It has days."}
    shown = await read(world, f"{track}.json?table=tracks", Accept="text/html,*/*;q=0.8")
    assert "This link has no table tracks. It has days." in HtmlPage(shown.body).text
    assert (await read(world, f"{track}.svg?other=1")).status == 200


async def test_programs_read_only_what_the_maker_allows(world: World) -> None:
    path = f"/insights/track/{world.made.tracks[0]}"
    form = (await world.page(path)).forms[f"{path}/share?period=30-days#share"]
    assert (form["programs"], form["period"], form["days"]) == ("on", "", "30")
    refused = await world.browser.post(f"{path}/share", {"days": "0", "period": "last-month"})
    again = HtmlPage(refused.body).forms[f"{path}/share?period=30-days#share"]
    assert ("programs" in again, again["period"]) == (False, "last-month")

    answer = await world.browser.post(f"{path}/share", {"days": "9"})
    assert b".csv" not in answer.body
    link = str(re.findall(r"/reports/[\w.-]+", answer.body.decode())[0])
    assert (await read(world, link)).status == 200
    for ending in ("csv", "json", "svg"):
        answer = await read(world, f"{link}.{ending}")
        assert (answer.status, b"its owner lets no program read it" in answer.body) == (404, True)
    settings = await world.page("/settings")
    assert re.search(r"Track, \d+ \w+ 2026 to \d+ \w+ 2026 · ends", settings.text)


async def test_a_link_of_a_moving_period_says_which(world: World) -> None:
    path = f"artist/{world.made.artists[0]}/share?from=1990-01-01&to=2026-01-31"  # too long for fixed days
    link = await share(world, path, period="7-days")
    page = HtmlPage((await read(world, link)).body)
    assert "This link always shows the last 7 days." in page.text
    tags = {str(found.get("property")): str(found.get("content")) for tag, found in page.attributes}
    assert "plays and listeners, the last 7 days. Shared by" in tags["og:description"]
    period = (await read(world, f"{link}.json")).json["period"]
    api = (await world.api(f"artists/{world.made.artists[0]}?period=7-days"))["period"]
    assert period == api
    assert period["name"] == "7-days"
    assert "Artist, the last 7 days · programs may read it · ends" in (await world.page("/settings")).text
    answer = await world.browser.post(f"/insights/{path}", {"days": "9", "period": "all"})
    assert (answer.status, b"Must be one of" in answer.body) == (422, True)
    compared = await share(world, f"compare/share?kind=album&ids={world.made.albums[0]}", period="last-month")
    assert "This link always shows last month." in HtmlPage((await read(world, compared)).body).text


async def test_programs_ask_again_and_keep_what_they_have(world: World) -> None:
    link = await share(world, f"album/{world.made.albums[0]}/share?{DAYS}")
    for path in (f"{link}.csv", f"{link}.json?table=tracks", f"{link}.svg"):
        answer = await read(world, path)
        tag = answer.headers["ETag"]
        assert answer.headers["Cache-Control"] == "private, max-age=60"
        assert answer.headers["X-Robots-Tag"] == "noindex"  # as the page says in its head
        assert not answer.body.startswith(b"\xef\xbb\xbf")
        known = await read(world, path, **{"If-None-Match": tag})
        assert (known.status, known.body, known.headers["ETag"]) == (304, b"", tag)
        assert known.headers["Cache-Control"] == "private, max-age=60"
        assert (await read(world, path, **{"If-None-Match": '"other"'})).status == 200
        async with page_client(world.shared.client.root) as anybody:
            head = await anybody.head(path)
        assert (head.status, head.body, head.headers["ETag"]) == (200, b"", tag)
        assert head.headers["Content-Length"] == answer.headers["Content-Length"]
        packed = await read(world, path, **{"Accept-Encoding": "gzip"})
        assert packed.body == answer.body
    page = await read(world, link)
    assert (page.headers["Cache-Control"], "ETag" in page.headers) == ("no-store", False)


async def test_two_links_and_their_forms_at_once_are_not_mixed_up(world: World) -> None:
    links = [await share(world, f"track/{world.made.tracks[each]}/share?{DAYS}") for each in (0, 1)]
    endings = ("", ".csv", ".json", ".svg", ".json?table=days")
    paths = [f"{link}{ending}" for link in links for ending in endings]
    one_by_one = [(await read(world, path)).body for path in paths]
    world.shared.clock.advance(MINUTE)
    at_once = await asyncio.gather(*(read(world, path) for path in [*paths, *reversed(paths)]))
    assert [answer.body for answer in at_once] == [*one_by_one, *reversed(one_by_one)]
    assert len(set(one_by_one)) == len(paths) - len(links)  # the days are the default table


def _end(link: int, user: int, now: int) -> None:
    report_links.end(ReportLink.get_by_id(link), user_id=user, now=now)


async def test_what_ends_the_page_ends_its_files(template: Template, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with (
        shared_server(template, tmp_path_factory.mktemp("ending")) as shared,
        page_client(shared.client.root) as browser,
    ):
        made = shared.store.write(lambda: fill(shared.clock.now())).result()
        manager, now = made.manager.user_id, shared.clock.now()
        browser.cookies["musicsvc"] = add_session(shared, manager)
        world = World(shared, browser, made)
        path = f"artist/{made.artists[0]}/share?{DAYS}"
        links = [await share(world, path, days="1"), await share(world, path)]
        ended = await share(world, path)

        async def statuses(link: str) -> set[int]:
            return {(await read(world, f"{link}{each}")).status for each in ("", ".csv", ".json", ".svg")}

        assert [await statuses(each) for each in (*links, ended)] == [{200}] * 3
        (number, *_) = shared.store.read(lambda: report_links.list(manager, now=now)).result()
        do(world, lambda: _end(number.id, manager, now))
        assert await statuses(ended) == {404}
        do(world, lambda: users.suspend(users.get(manager), now=now))
        assert await statuses(links[1]) == {404}
        do(world, lambda: users.reinstate(users.get(manager), now=now))
        assert await statuses(links[1]) == {200}
        do(world, lambda: Artist.update(manager=None).where(Artist.id == made.artists[0]).execute())
        assert await statuses(links[1]) == {404}
        do(world, lambda: Artist.update(manager=manager).where(Artist.id == made.artists[0]).execute())
        shared.clock.advance(24 * 60 * MINUTE)
        assert [await statuses(each) for each in links] == [{404}, {200}]
        payload, _, signature = links[1].rpartition(".")
        changed = signature[:-2] + ("AA" if signature[-2:] != "AA" else "BB")
        for wrong in (f"{payload}.{changed}.csv", f"{payload}.csv", f"{links[1]}.CSV", f"{links[1]}.csv.csv",
                      f"{links[1]}.xlsx", f"{links[1]}.csv/", f"{links[1]}csv", "/reports/.csv"):  # fmt: skip
            assert (await read(world, wrong)).status == 404, wrong


async def test_a_subject_that_is_renamed_or_merged_keeps_its_link(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with (
        shared_server(template, tmp_path_factory.mktemp("renaming")) as shared,
        page_client(shared.client.root) as browser,
    ):
        made = shared.store.write(lambda: fill(shared.clock.now())).result()
        browser.cookies["musicsvc"] = add_session(shared, made.manager.user_id)
        world = World(shared, browser, made)
        artists = made.artists
        link = await share(world, f"artist/{artists[0]}/share?{DAYS}")
        compared = await share(world, f"compare/share?kind=artist&ids={artists[0]},{artists[1]}&{DAYS}")
        do(world, lambda: Artist.update(name=ODD).where(Artist.id == artists[0]).execute())
        assert (await read(world, f"{link}.json")).json["name"] == ODD
        assert rows(await read(world, f"{compared}.csv"))[1][0] == f"'{ODD}"  # a spreadsheet runs no formula
        assert rows(await read(world, f"{link}.csv?table=tracks"))[1][1].startswith(f"'{ODD}")
        drawn = ET.fromstring((await read(world, f"{link}.svg")).body)  # noqa: S314 - our own
        assert str(next(drawn.iter(f"{SVG}title")).text).startswith(f"{ODD}: ")
        days = (await read(world, f"{link}.json")).json["rows"]
        do(world, lambda: merge(made, shared.clock.now()))
        world.shared.clock.advance(MINUTE)
        found = (await read(world, f"{link}.json")).json
        assert found["name"] == "Artist 1"
        assert sum(row["plays"] for row in found["rows"]) > sum(row["plays"] for row in days)
        assert {row["subject"] for row in (await read(world, f"{compared}.json")).json["rows"]} == {"Artist 1"}


def merge(made: Catalog, now: int) -> None:
    merging.merge("artist", made.artists[0], made.artists[1], now=now)


async def test_files_count_with_the_reports_of_an_address(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = Settings(limits=Limits.model_validate({"local": True, "reports": "3/minute"}))
    async with (
        shared_server(template, tmp_path_factory.mktemp("limits"), settings) as shared,
        page_client(shared.client.root) as browser,
    ):
        made = shared.store.write(lambda: fill(shared.clock.now())).result()
        browser.cookies["musicsvc"] = add_session(shared, made.manager.user_id)
        link = await share(World(shared, browser, made), f"track/{made.tracks[0]}/share?{DAYS}")
        browser.cookies.clear()
        browser.move(7)
        found = [(await browser.get(f"{link}{each}")).status for each in (".csv", ".json", "", ".svg")]
        assert found == [200, 200, 200, 429]
        for ending in ("csv", "json", "svg"):
            refused = await browser.get(f"{link}.{ending}", Accept="*/*")
            assert (refused.status, refused.json["status"]) == (429, "error")
            assert refused.json["message"].startswith("The limit of 3 shared reports a minute for your address")
