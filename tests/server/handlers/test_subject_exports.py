"""Exports of one artist, album or track have the figures of its endpoints, and nobody else's."""

import csv
import io
import json
import random
from typing import Any

import openpyxl
import pytest

from musicsvc.clock import DAY
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.models import Album, Artist, Track, TrackArtist
from musicsvc.store.plays.periods import SLOT
from tests.conftest import NOW
from tests.rights.world import OWNER
from tests.support import export_files
from tests.support.listening_world import ALBUMS, TRACKS, Catalog, catalog
from tests.support.pdf_text import printed
from tests.support.serving import Answer, Client
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop
PERIOD = {"from": "2026-01-10", "to": "2026-03-01"}
QUERY = "from=2026-01-10&to=2026-03-01"
SUBJECTS = [("artist", 0), ("artist", 2), ("album", 0), ("album", 1), ("track", 1), ("track", 4)]


def fill() -> Catalog:
    """Create the catalog of listening_world with plays of a year, likes and reposts, beside another account's."""
    chance = random.Random(22)
    other, made = catalog(NOW), catalog(NOW)
    for each in (other, made):
        each.add_plays(
            (
                each.tracks[chance.choice((0, 0, 0, 1, 2, 3, 3))],
                NOW - day * DAY - chance.randrange(900) * SLOT,
                str(who),
            )
            for day, who in ((min(int(chance.expovariate(1 / 40)), 360), chance.randrange(60)) for _ in range(600))
        )
    made.give(
        *([(made.tracks[chance.randrange(4)], NOW - chance.randrange(60) * DAY) for _ in range(25)] for _ in "lr")
    )
    # An artist of another account on a track and, by the track, in an album of the manager.
    TrackArtist.create(track=made.tracks[0], artist=other.artists[1], position=5)
    Album.update(release_date="2026-01-20").where(Album.id << made.albums).execute()
    Artist.update(name="Zoë & the Others").where(Artist.id == made.artists[0]).execute()
    Track.update(name="\u90ce").where(Track.id == made.tracks[4]).execute()
    return made


@pytest.fixture(scope="module")
def made(shared: Shared) -> Catalog:
    return shared.store.write(fill).result()


@pytest.fixture
def ask(shared: Shared, made: Catalog) -> Client:
    return shared.client.holding(made.token)


def number(made: Catalog, kind: str, place: int) -> int:
    return int({"artist": made.artists, "album": made.albums, "track": made.tracks}[kind][place])


def within(made: Catalog, kind: str, place: int) -> dict[str, list[int]]:
    """Return the ids of the tracks, albums and artists that belong to the subject."""
    if kind == "artist":
        tracks = [each for each, (_, artists) in enumerate(TRACKS) if place in artists]
        albums, artists = [each for each, of in enumerate(ALBUMS) if place in of], [place]
    else:
        tracks = [each for each, (album, _) in enumerate(TRACKS) if album == place] if kind == "album" else [place]
        albums, artists = ([place] if kind == "album" else []), []
    return {
        "tracks": [made.tracks[each] for each in tracks],
        "albums": [made.albums[each] for each in albums],
        "artists": [made.artists[each] for each in artists],
    }


async def data(client: Client, path: str) -> Any:
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == 200
    return answer.json["data"]


async def export(client: Client, form: str, **sent: Any) -> Answer:
    answer = await client.post(f"{INSIGHTS}/export/{form}", sent)
    assert answer.status == 200, answer.body
    return answer


def blocks(row: Any) -> dict[str, Any]:
    """Return the figures of a row as the endpoints arrange them."""
    return {
        "plays": {"total": row["plays_total"], "period": row["plays_period"]},
        "listeners": {"total": row["listeners_total"], "unique": row["listeners_period"]},
        "engagement": {"likes": row["likes"], "reposts": row["reposts"]},
        "growth": {"plays_change": row["plays_change"], "listeners_change": row["listeners_change"]}
        | {"first_play": row["first_play"]},
    }


@pytest.mark.parametrize(("kind", "place"), SUBJECTS)
async def test_the_rows_are_those_of_the_subject_with_the_figures_of_their_endpoints(
    ask: Client, made: Catalog, kind: str, place: int
) -> None:
    only = {f"{kind}_id": number(made, kind, place), **PERIOD}
    for type_, ids in within(made, kind, place).items():
        found = (await export(ask, "json", type=type_, **only)).json["data"]
        assert [row[f"{type_[:-1]}_id"] for row in found["rows"]] == ids
        for row, each in zip(found["rows"], ids, strict=True):
            endpoint = await data(ask, f"{type_}/{each}?{QUERY}")
            assert blocks(row) == {name: endpoint[name] for name in blocks(row)}
        wanted = {"user_id": made.manager.user_id, "artist_id": None, "album_id": None, "track_id": None}
        assert found["verification"]["scope"] == wanted | {f"{kind}_id": number(made, kind, place)}

        lines = csv.DictReader(io.StringIO((await export(ask, "csv", type=type_, **only)).body.decode(), newline=""))
        texts = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in found["rows"]]
        assert list(lines) == texts
        book = openpyxl.load_workbook(io.BytesIO((await export(ask, "xlsx", type=type_, **only)).body))
        shown = [export_files.for_people(row, (PERIOD["from"], PERIOD["to"]), NOW) for row in found["rows"]]
        assert export_files.sheet_rows(book[type_]) == shown


@pytest.mark.parametrize(("kind", "place"), SUBJECTS)
async def test_daily_rows_are_the_days_of_the_subjects_tracks(
    ask: Client, made: Catalog, kind: str, place: int
) -> None:
    only = {f"{kind}_id": number(made, kind, place)}
    rows = (await export(ask, "json", type="plays", **only, **PERIOD)).json["data"]["rows"]
    tracks = within(made, kind, place)["tracks"]
    expected = set()
    for track in tracks:
        for point in (await data(ask, f"tracks/{track}/charts?{QUERY}"))["points"]:
            if point["plays"]:
                expected.add((point["date"], track, point["plays"], point["listeners"]))
    assert {(row["date"], row["track_id"], row["plays"], row["listeners"]) for row in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place"), SUBJECTS)
async def test_the_report_is_that_of_the_subject(ask: Client, made: Catalog, kind: str, place: int) -> None:
    each = number(made, kind, place)
    only, path = {f"{kind}_id": each, **PERIOD}, f"{kind}s/{each}"
    report = (await export(ask, "report", include_charts=True, include_listening=True, **only)).json["data"]
    endpoint = await data(ask, f"{path}?{QUERY}")
    counts = {f"{type_}_count": len(ids) for type_, ids in within(made, kind, place).items()}
    four = ("plays", "listeners", "engagement", "growth")
    assert report["summary"] == {name: endpoint[name] for name in four} | counts
    assert report["charts"] == await data(ask, f"{path}/charts?{QUERY}")
    assert {row["id"] for row in report["top_tracks"]} <= set(within(made, kind, place)["tracks"])
    assert sum(row["plays"]["period"] for row in report["top_tracks"]) == endpoint["plays"]["period"]
    listening = await data(ask, f"{path}/listening?{QUERY}")
    assert report["listening"] == {name: value for name, value in listening.items() if name != "period"}
    hours = await data(ask, f"{path}/hours?{QUERY}")
    assert report["hours"]["hours"] == hours["hours"]
    for milestone in report["milestones"]:
        assert milestone["id"] in within(made, kind, place)[f"{milestone['kind']}s"]
    assert {release["id"] for release in report["releases"]["releases"]} == set(within(made, kind, place)["albums"])

    text = printed((await export(ask, "pdf", **only)).body)
    names = {"artist": "Zoë & the Others" if place == 0 else f"Artist {place}", "album": f"Album {place}"}
    assert names.get(kind, "\u90ce" if place == 4 else f"Track {place}") in text
    assert f"Plays of all time {endpoint['plays']['total']:,} " in text
    assert ("Artists 1" in text) == (kind == "artist")
    assert "Most played artists" not in text  # of one


async def test_files_are_named_after_the_subject(ask: Client, made: Catalog) -> None:
    artist, track = made.artists[0], made.tracks[4]
    days = "2026-01-10-to-2026-03-01"
    for form, sent, name in (
        ("csv", {"artist_id": artist}, f"musicsvc-artist-{artist}-zoe-the-others-tracks-{days}.csv"),
        ("xlsx", {"track_id": track, "type": "plays"}, f"musicsvc-track-{track}-plays-{days}.xlsx"),
        ("pdf", {"album_id": made.albums[1]}, f"musicsvc-album-{made.albums[1]}-album-1-report-{days}.pdf"),
    ):
        headers = (await export(ask, form, **sent, **PERIOD)).headers
        assert headers["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize("form", ["csv", "json", "xlsx", "report", "pdf"])
async def test_what_the_body_says_is_checked_before_the_right_to_what_it_names(
    ask: Client, made: Catalog, shared: Shared, form: str
) -> None:
    path = f"{INSIGHTS}/export/{form}"
    world = shared.world()
    stranger = shared.client.holding(world.tokens[OWNER])
    named = {"artist": made.artists[0], "album": made.albums[0], "track": made.tracks[0]}
    for kind, each in named.items():
        assert (await stranger.post(path, {f"{kind}_id": each})).status == 403
        unknown = await ask.post(path, {f"{kind}_id": 2**53 - 1})
        assert (unknown.status, unknown.json["error"]) == (404, "not_found")
        wrong = await stranger.post(path, {f"{kind}_id": each, "period": "week"})
        assert (wrong.status, list(wrong.json["errors"])) == (422, ["period"])
        assert (await ask.post(path, {f"{kind}_id": None})).status == 200
    two = await stranger.post(path, {"artist_id": 1, "track_id": 1, "album_id": None})
    assert two.status == 422
    assert two.json["errors"] == {"track_id": "Must not be given together with artist_id."}
    three = await ask.post(path, {"artist_id": 1, "track_id": 2, "album_id": "x"})
    assert set(three.json["errors"]) == {"album_id", "track_id"}
    in_query = await ask.post(f"{path}?album_id=1", {})
    assert json.loads(in_query.body)["errors"] == {"album_id": "Must be sent in the body, not in the query."}
