"""Managed subjects are found, compared, explained and ranked with the figures of the other endpoints."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from musicsvc.cli import main
from musicsvc.cli.session import Session
from musicsvc.clock import DAY
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.engine.sql import run
from musicsvc.store.insights.figures import NOT_YOURS
from musicsvc.store.plays import counting
from musicsvc.store.plays.rollups import counts
from musicsvc.store.plays.subjects import TRACK
from tests.server.handlers.test_agreement import NOUNS, PERIODS, in_chart_query, in_query, two_years, window
from tests.support.listening_world import Catalog, catalog
from tests.support.oracle import Period
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop
BEHIND = counts.UNCOUNTED << counts.LEVEL_SHIFT  # the key of plays that are not counted yet
SOME: list[Period] = [PERIODS[0], PERIODS[-1]]


@pytest.fixture(scope="module")
def made(shared: Shared) -> Catalog:
    return shared.store.write(two_years).result()


@pytest.fixture(scope="module")
def others(shared: Shared) -> Catalog:
    return shared.store.write(lambda: catalog(0)).result()


@pytest.fixture
def small(shared: Shared) -> Catalog:
    """Three tracks with two plays each."""

    def make() -> Catalog:
        made, at = catalog(shared.clock.now()), shared.clock.now() - DAY
        made.add_plays((made.tracks[each], at, name) for each in (2, 4, 0) for name in "ab")
        return made

    return shared.store.write(make).result()


@pytest.fixture
def ask(shared: Shared, made: Catalog) -> Client:
    return CheckedClient(shared.client.session, shared.client.root, made.token)


def fall_behind(track: int) -> None:
    """Let counts of a track be wrong while plays are left to be counted; in a writing unit."""
    rows = f"{counts.KIND} = {TRACK} AND {counts.SUBJECT} = ? AND key < {1 << counts.LEVEL_SHIFT}"
    run(f"UPDATE play_count SET plays = plays + 1 WHERE {rows}", track)
    run(counting.LEAVE, BEHIND, 1, b"[[],[],[],[],[]]", b"")


async def data(client: Client, path: str) -> Any:
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == 200, answer.body
    return answer.json["data"]


async def refused(client: Client, path: str, status: int) -> Any:
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == status, answer.body
    return answer.json.get("errors", answer.json["message"])


@pytest.mark.on_both
@pytest.mark.parametrize("period", SOME, ids=str)
async def test_a_comparison_has_the_figures_and_charts_of_each(ask: Client, made: Catalog, period: Period) -> None:
    for noun in NOUNS:
        ids = [*reversed(getattr(made, f"{noun}s"))]
        found = await data(ask, f"compare?kind={noun}s&ids={','.join(map(str, ids))}&{in_query(period)}")
        figures = [await data(ask, f"{noun}s/{each}?{in_query(period)}") for each in ids]
        charts = [await data(ask, f"{noun}s/{each}/charts?{in_chart_query(period)}") for each in ids]
        assert found["period"] == figures[0]["period"]
        assert [(row["id"], row["plays"], row["listeners"], row["plays_change"]) for row in found["rows"]] == [
            (each, of["plays"]["period"], of["listeners"]["unique"], of["growth"]["plays_change"])
            for each, of in zip(ids, figures, strict=True)
        ]
        assert found["points"] == [
            {"date": of[0]["date"]} | {name: [point[name] for point in of] for name in ("plays", "listeners")}
            for of in zip(*(chart["points"] for chart in charts), strict=True)
        ]


@pytest.mark.on_both
@pytest.mark.parametrize("period", SOME, ids=str)
async def test_movers_are_those_of_a_full_count_by_the_size_of_the_change_and_then_by_id(
    ask: Client, made: Catalog, shared: Shared, period: Period
) -> None:
    days, past = window(period, shared.clock.now()), made.past
    tracks_of = {"track": {each: [each] for each in made.tracks}, "album": past.on_album, "artist": past.by_artist}
    for noun in NOUNS:
        rows = []
        for each in getattr(made, f"{noun}s"):
            plays, before = (
                sum(of.starts <= play.at < of.ends and play.track in tracks_of[noun][each] for play in past.plays)
                for of in (days, days.before)
            )
            name = {"track": past.names, "album": past.album_names, "artist": past.artist_names}[noun][each]
            rows.append({"id": each, "name": name, "plays": plays, "before": before, "change": plays - before})
        rows.sort(key=lambda row: (-abs(row["change"]), row["id"]))
        found = await data(ask, f"movers?kind={noun}s&{in_query(period)}")
        assert found.pop("period") == (await data(ask, f"artists/{made.artists[0]}?{in_query(period)}"))["period"]
        assert found == {
            side: [row for row in rows if row["change"] * sign > 0] for side, sign in (("up", 1), ("down", -1))
        }
        first = await data(ask, f"movers?kind={noun}s&limit=1&{in_query(period)}")
        assert [first[side] for side in found] == [found[side][:1] for side in found]


async def test_movers_with_equal_changes_are_in_the_order_of_their_ids(small: Catalog, shared: Shared) -> None:
    ask = shared.client.holding(small.token)
    found = [(await data(ask, f"movers?kind={kind}"))["up"] for kind in ("tracks", "artists&limit=2")]
    tracks, artists = ([row["id"] for row in rows] for rows in found)
    assert tracks == [small.tracks[each] for each in (0, 2, 4)]
    assert artists == small.artists[:2]


@pytest.mark.on_both
async def test_what_is_managed_is_found_by_name_and_code(ask: Client, made: Catalog, others: Catalog) -> None:
    found = await data(ask, "find?q=artist%201")
    plays = (await data(ask, f"artists/{made.artists[1]}"))["plays"]["total"]
    row = {"id": made.artists[1], "name": "Artist 1", "artists": [], "plays_total": plays}
    assert found == {"artists": [row], "albums": [], "tracks": []}
    assert [row["id"] for row in (await data(ask, "find?q=de-z99-24-00004"))["tracks"]] == [made.tracks[3]]
    assert [row["id"] for row in (await data(ask, "find?query=036000291452"))["albums"]] == [made.albums[0]]
    track = (await data(ask, "find?q=3&kind=tracks"))["tracks"]
    assert [(row["id"], row["artists"]) for row in track] == [(made.tracks[3], ["Artist 2", "Artist 0", "Artist 1"])]
    everything = await data(ask, "find?q=a&kind=artists")
    assert {row["id"] for row in everything["artists"]} == {*made.artists}
    assert everything["albums"] == everything["tracks"] == []
    assert others.artists[0] not in {row["id"] for row in everything["artists"]}


@pytest.mark.on_both
@pytest.mark.parametrize("noun", NOUNS)
async def test_an_explanation_recounts_what_the_endpoints_return(ask: Client, made: Catalog, noun: str) -> None:
    subject = f"{noun}s/{getattr(made, f'{noun}s')[0]}"
    found = await data(ask, f"{subject}/explain?from=2025-11-03&to=2026-02-28")
    served = await data(ask, f"{subject}?from=2025-11-03&to=2026-02-28")
    assert found["served"] == {name: served[name] for name in found["served"]}
    assert found["counted"]["period"] == {
        "plays": served["plays"]["period"],
        "listeners": served["listeners"]["unique"],
    }
    assert (found["equal"], found["differences"]) == (True, [])
    assert found["listening"]["counted"] == found["listening"]["served"]


@pytest.mark.only_on("sqlite")
async def test_an_explanation_is_that_of_the_command_line(
    ask: Client,
    made: Catalog,
    shared: Shared,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", shared.store.url)
    line = ["insights", "explain", "album", str(made.albums[0]), "--period", "7-days", "--json"]
    await asyncio.to_thread(
        main.command().main, line, prog_name="musicsvc", obj=Session(clock=shared.clock), standalone_mode=False
    )
    printed = json.loads(capsysbinary.readouterr().out)
    assert await data(ask, f"albums/{made.albums[0]}/explain?period=7-days") == printed
    assert printed["listening"]["served"]["release"]


@pytest.mark.on_both
async def test_an_explanation_waits_for_plays_that_are_not_counted(small: Catalog, shared: Shared) -> None:
    ask, track = shared.client.holding(small.token), small.tracks[0]
    assert (await data(ask, f"tracks/{track}/explain"))["equal"]
    shared.store.write(lambda: fall_behind(track)).result()
    waits = await ask.get(f"{INSIGHTS}/tracks/{track}/explain")
    shared.store.write(lambda: run("DELETE FROM play_count WHERE key = ?", BEHIND)).result()
    differs = await data(ask, f"tracks/{track}/explain")
    assert (waits.status, waits.headers["Retry-After"]) == (503, "1")
    assert {each["figure"] for each in differs["differences"]} >= {"plays in the window", "plays of all time"}


@pytest.mark.only_on("sqlite")
async def test_wrong_queries_are_refused_by_field(ask: Client, made: Catalog, others: Catalog) -> None:
    own, strange = made.tracks[0], others.tracks[0]
    lists = "Must be ids of tracks, albums or artists, separated by commas."
    for path, errors in (
        ("find", {"q": "This field is required."}),
        ("find?q=%20", {"q": "This field is required."}),
        ("find?q=a&kind=track", {"kind": "Must be one of: 'tracks', 'albums' or 'artists'."}),
        ("movers?period=7-days", {"kind": "This field is required."}),
        ("movers?kind=tracks&limit=51", {"limit": "Must be at most 50."}),
        (f"compare?kind=tracks&ids={own}", {"ids": "Must have at least 2 entries."}),
        (f"compare?kind=tracks&ids={own},{own}", {"ids": "Must not have an entry twice."}),
        ("compare?kind=tracks&ids=1,2,3,4,5,6", {"ids": "Must have at most 5 entries."}),
        ("compare?kind=tracks&ids=1,a", {"ids": lists}),
        (
            f"tracks/{own}/explain?from=2025-01-01&to=2026-01-02",
            {"to": "Must be at most 366 days, from the first to the last."},
        ),
    ):
        assert await refused(ask, path, 422) == errors, path
    assert (await ask.get(f"{INSIGHTS}/tracks/{own}/explain?from=2025-01-01&to=2026-01-01")).status == 200
    assert await refused(ask, f"compare?kind=tracks&ids={own},{strange}", 403) == NOT_YOURS
    assert await refused(ask, f"tracks/{strange}/explain", 403) == NOT_YOURS
    assert await refused(ask, f"compare?kind=albums&ids={made.albums[0]},99999", 404) == "There is no such album."
