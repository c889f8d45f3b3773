"""The insights endpoints: figures equal recomputed ones, the insights body everywhere, realtime in every process."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY, MINUTE, SECOND, MovableClock, isoformat, parse
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engagement import likes
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Follow, Secret, Track, TrackArtist
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.conftest import NOW
from tests.support import databases
from tests.support.listening_world import Catalog, two_years
from tests.support.pdf_text import printed
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client, person

SHARED = 103  # tracks that an artist shares, each with another artist


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    """Two years of plays, of which each test has a copy."""
    return store.write(lambda: two_years(NOW)).result()


async def data(client: Client, path: str) -> Any:
    """Return `data` of a successful answer."""
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == 200, answer.body
    assert answer.json["success"] is True
    assert set(answer.json) == {"success", "data"}
    return answer.json["data"]


async def test_thirty_days_are_meant_where_nothing_is_said(ask: Client, made: Catalog) -> None:
    for path in (f"tracks/{made.tracks[0]}", f"albums/{made.albums[0]}", f"artists/{made.artists[0]}"):
        assert await data(ask, path) == await data(ask, f"{path}?period=30-days")
        assert await data(ask, f"{path}/charts") == await data(ask, f"{path}/charts?timeframe=30d")


async def test_a_figure_is_of_the_moment(ask: Client, made: Catalog, store: Store, clock: MovableClock) -> None:
    path = f"artists/{made.artists[0]}?period=7-days"
    before = await data(ask, path)
    store.write(partial(made.add_plays, [(made.tracks[0], clock.now(), "somebody new")])).result()
    store.write(partial(made.give, [(made.tracks[0], clock.now())], [])).result()
    fan = person(store, clock, "fan@label.test")[0]
    store.write(lambda: Follow.create(follower=fan, followed=made.manager.user_id, created_at=clock.now())).result()

    after = await data(ask, path)

    assert after["plays"]["period"] == before["plays"]["period"] + 1
    assert after["plays"]["total"] == before["plays"]["total"] + 1
    assert after["listeners"]["unique"] == before["listeners"]["unique"] + 1
    assert after["engagement"]["likes"] == before["engagement"]["likes"] + 1
    assert after["followers"] == before["followers"] + 1 == 1
    assert after == made.past.artist(made.artists[0], "7-days", clock.now(), followers=1)
    clock.advance(7 * DAY)
    later = await data(ask, path)
    assert later == made.past.artist(made.artists[0], "7-days", clock.now(), followers=1)
    assert later["plays"]["period"] == 0


async def test_withdrawn_likes_and_reposts_do_not_count(
    ask: Client, made: Catalog, store: Store, clock: MovableClock
) -> None:
    track = made.tracks[0]
    store.write(partial(made.give, [(track, clock.now())], [])).result()
    before = await data(ask, f"tracks/{track}")

    def withdraw() -> None:
        for (fan,) in fetch("SELECT user_id FROM track_like WHERE track_id = ?", track):
            likes.remove(likes.LIKE, track, actor=made.manager._replace(user_id=fan))

    store.write(withdraw).result()

    assert before["engagement"]["likes"] > 0
    assert (await data(ask, f"tracks/{track}"))["engagement"]["likes"] == 0
    assert sum(point["likes"] for point in (await data(ask, f"tracks/{track}/charts"))["points"]) == 0


async def test_a_subject_without_plays_has_zeros_and_no_growth(ask: Client, made: Catalog) -> None:
    found = await data(ask, f"tracks/{made.tracks[4]}?period=1-year")

    assert found["plays"] == {"total": 0, "period": 0}
    assert found["growth"] == {"plays_change": None, "listeners_change": None, "first_play": None}
    points = (await data(ask, f"tracks/{made.tracks[4]}/charts?timeframe=1y"))["points"]
    assert len(points) == 365
    assert not any(point[name] for point in points for name in ("plays", "listeners", "likes", "reposts"))


async def test_collaborations_are_shared_tracks_with_their_artists(ask: Client, made: Catalog) -> None:
    for artist in made.artists:
        found = await data(ask, f"artists/{artist}/collaborations")
        total, partners, tracks = made.past.collaborations(artist)
        assert found["total_collaborations"] == total > 0
        rows = [(row["id"], row["tracks_count"], row["plays"]) for row in found["top_collaborators"]]
        assert rows == partners
        assert [row["id"] for row in found["collaboration_tracks"]] == tracks
    assert [row["name"] for row in found["collaboration_tracks"][0]["artists"]] == ["Artist 2", "Artist 0", "Artist 1"]


async def test_realtime_shows_the_last_minutes(ask: Client, made: Catalog, store: Store, clock: MovableClock) -> None:
    now, track = clock.now(), made.tracks[4]
    heard = [(back * MINUTE, str(back % 7)) for back in range(3, 200, 2)]
    heard += [(0, "a"), (4 * MINUTE + 59 * SECOND, "b"), (5 * MINUTE, "c"), (-4 * MINUTE, "ahead"), (60 * MINUTE, "d")]
    store.write(partial(made.add_plays, [(track, now - back, name) for back, name in heard])).result()

    found = await data(ask, f"tracks/{track}/realtime")

    expected = made.past.realtime(track, now)
    recent = expected.pop("recent_plays")
    assert found | expected == found
    assert found["active_listeners"] == 4  # a, b, the one whose clock is ahead, and the 3 of 3 minutes ago
    assert found["updated_at"] == isoformat(now)
    assert [play["played_at"] for play in found["recent_plays"]] == [isoformat(at) for at, _ in recent]
    hashes = {name: play["listener_hash"] for (_, name), play in zip(recent, found["recent_plays"], strict=True)}
    assert [hashes[name] for _, name in recent] == [play["listener_hash"] for play in found["recent_plays"]]
    assert len(set(hashes.values())) == len(hashes)


async def test_recent_plays_may_be_long_ago(ask: Client, made: Catalog, store: Store, clock: MovableClock) -> None:
    now, track = clock.now(), made.tracks[4]
    times = [now - days * DAY for days in (9, 10, 399, 1999)]  # on the last of these days, no other track was played
    store.write(partial(made.add_plays, [(track, at, "x") for at in times])).result()

    found = await data(ask, f"tracks/{track}/realtime")

    assert [play["played_at"] for play in found["recent_plays"]] == [isoformat(at) for at in times]
    assert (found["active_listeners"], found["plays_last_hour"]) == (0, 0)


async def test_a_listener_is_known_by_the_installations_secret_alone(
    ask: Client, made: Catalog, store: Store, clock: MovableClock
) -> None:
    track = made.tracks[4]
    store.write(partial(made.add_plays, [(track, clock.now(), "x"), (made.tracks[0], clock.now(), "x")])).result()

    async def hashed(number: int) -> str:
        found: str = (await data(ask, f"tracks/{number}/realtime"))["recent_plays"][0]["listener_hash"]
        return found

    before = await hashed(track)
    assert await hashed(made.tracks[0]) == before
    store.write(lambda: Secret.update(value=bytes(32)).execute()).result()
    assert await hashed(track) != before


@pytest.mark.on_both
@pytest.mark.slow
async def test_lists_of_figures_are_cut_at_their_bounds_in_the_middle_of_ties(
    ask: Client, made: Catalog, store: Store, clock: MovableClock
) -> None:
    past, now, artist = made.past, clock.now(), made.artists[0]
    store.write(partial(share_tracks, made, now)).result()

    assert await data(ask, f"albums/{made.albums[0]}") == past.album(made.albums[0], "30-days", now)
    found = await data(ask, f"artists/{artist}")
    assert found == past.artist(artist, "30-days", now, followers=0)
    assert (len(found["top_tracks"]), len(found["top_albums"])) == (10, 10)

    total, partners, tracks = past.collaborations(artist)
    found = await data(ask, f"artists/{artist}/collaborations")
    assert found["total_collaborations"] == total > 100
    rows = [(row["id"], row["tracks_count"], row["plays"]) for row in found["top_collaborators"]]
    assert (rows, len(rows)) == (partners[:100], 100)
    assert [row["id"] for row in found["collaboration_tracks"]] == tracks[:100] != tracks

    past.by_artist[0] = [*past.names]  # no artist's id: everything together
    past.albums_by_artist[0] = [*past.album_names]
    everything = past.artist(0, "30-days", now, followers=0)
    report = await ask.post(f"{INSIGHTS}/export/report", {})
    assert report.json["data"]["top_tracks"] == everything["top_tracks"]
    text = printed((await ask.post(f"{INSIGHTS}/export/pdf", {})).body)
    names = [row["name"] for row in everything["top_albums"]]
    assert [name for name in names if f"{name} " in text] == names[:5]
    places = [text.index(f"{name} ") for name in names[:5]]
    assert places == sorted(places)


def share_tracks(made: Catalog, now: int) -> None:
    """Let the first artist share many tracks, some on own albums, with ties in every figure of the rankings."""
    artist, past = made.artists[0], made.past
    for number in range(SHARED):
        partner = int(Artist.create(name=f"Partner {number}", manager=made.manager.user_id, created_at=1).id)
        album = made.albums[0]
        if number % 8 == 0:
            album = int(Album.create(name=f"Extra {number}", created_at=1).id)
            AlbumArtist.create(album=album, artist=artist, position=0)
            past.album_names[album] = f"Extra {number}"
            past.albums_by_artist[artist].append(album)
        track = int(Track.create(name=f"More {number}", duration=1, album=album, created_at=1).id)
        past.names[track] = f"More {number}"
        past.on_album.setdefault(album, []).append(track)
        for position, each in enumerate((artist, partner)):
            TrackArtist.create(track=track, artist=each, position=position)
            past.by_artist.setdefault(each, []).append(track)
        made.add_plays((track, now, str(each)) for each in range(number // 8 % 4 + 20))
        made.add_plays((track, now - 40 * DAY, str(each)) for each in range(number % 3))
    # More tracks with one of them than with others, and fewer plays.
    quiet = int(Track.create(name="Quiet", duration=1, created_at=1).id)
    past.names[quiet] = "Quiet"
    for position, each in enumerate((artist, next(each for each in past.by_artist if each not in made.artists))):
        TrackArtist.create(track=quiet, artist=each, position=position)
        past.by_artist[each].append(quiet)


# The examples of docs/insights.md and docs/listening.md, played and requested.

DOCS = Path(__file__).parents[3] / "docs"
PLAYED = re.compile(r"^\| (\d{4}-\d\d-\d\d \d\d:\d\d) \| (\d) \| (\w+) \|(?: (\d*) ?\|)?$", re.MULTILINE)
ASKED = re.compile(r"^`GET ([^`]+)`\n\n```json\n(.+?)^```$", re.MULTILINE | re.DOTALL)
Albums = list[tuple[str, str | None]]
Tracks = list[tuple[str, int, int]]


def played(text: str, albums: Albums, tracks: Tracks, now: int) -> str:
    """Store the plays of the example; return the token of the artist's manager."""
    user = users.create("ann@label.test", api_access=True, now=now)
    Artist.create(name="Scott", manager=user, created_at=now)
    for number, (name, released) in enumerate(albums, 1):
        Album.create(name=name, release_date=released, created_at=now)
        AlbumArtist.create(album=number, artist=1, position=0)
    for number, (name, length, album) in enumerate(tracks, 1):
        Track.create(name=name, duration=length, album=album, created_at=now)
        TrackArtist.create(track=number, artist=1, position=0)
    plays = [
        (parse(f"{at}Z"), int(track), name, int(heard) if heard else None)
        for at, track, name, heard in PLAYED.findall(text)
    ]
    ids = listeners.ensure([name for _, _, name, _ in plays])
    ingest.record([PlayRow(at // SLOT, track, ids[name], WITHOUT_ID, at, heard, 0) for at, track, name, heard in plays])
    return tokens.create(user, "test", now=now)[1]


@pytest.mark.parametrize(
    ("page", "albums", "tracks", "plays"),
    [
        ("insights", [("Rags", None)], [("Rag", 1, 1), ("March", 1, 1)], 8),
        (
            "listening",
            [("Rags", "2026-02-27"), ("Waltzes", "2026-02-28")],
            [("Track 1", 200_000, 1), ("Track 2", 0, 1), ("Track 3", 90_000, 2)],
            7,
        ),
    ],
)
async def test_the_example_has_the_documented_answers(
    anonymous: Client, store: Store, clock: MovableClock, page: str, albums: Albums, tracks: Tracks, plays: int
) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    token = store.write(lambda: played(text, albums, tracks, clock.now())).result()
    client = CheckedClient(anonymous.session, anonymous.root, token)

    found = {path: (await client.get(f"{INSIGHTS}{path}")).json["data"] for path, _ in ASKED.findall(text)}

    assert found == {path: json.loads(block) for path, block in ASKED.findall(text)}
    assert (len(found), len(PLAYED.findall(text))) == (4, plays)
