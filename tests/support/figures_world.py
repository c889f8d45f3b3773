"""A server with a browser, signed in as the manager of a catalog in which no two figures are equal."""

import random
from typing import Any

from musicsvc.clock import DAY
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.models import Album, AlbumArtist, Track, TrackArtist
from musicsvc.store.plays.periods import SLOT
from tests.support.html_page import HtmlPage
from tests.support.listening_world import Catalog, catalog, correct, record
from tests.support.oracle import PlayOf
from tests.support.page_client import PageClient
from tests.support.shared_server import Shared

EMPTY = "\u2013"  # in place of a figure that does not exist


class World:
    """A server, a browser signed in as the manager of a catalog with plays, and that catalog."""

    def __init__(self, shared: Shared, browser: PageClient, made: Catalog) -> None:
        self.shared = shared
        self.browser = browser
        self.made = made

    async def api(self, path: str) -> Any:
        answer = await self.shared.client.holding(self.made.token).get(f"{INSIGHTS}/{path}")
        assert answer.status == 200
        return answer.json["data"]

    async def page(self, path: str) -> HtmlPage:
        answer = await self.browser.get(path)
        assert answer.status == 200, answer.body
        return HtmlPage(answer.body)


def fill(now: int) -> Catalog:
    """Create a catalog in which no two counts are equal, and no list is empty."""
    chance = random.Random(5)
    made = catalog(now)
    _fill_other(now, made)
    tracks = [chance.choice((0, 0, 0, 0, 1, 1, 2, 3)) for _ in range(900)]
    days = [min(int(chance.expovariate(1 / 60)), 780) for _ in tracks]
    people = [int(chance.triangular(0, 400, 60)) for _ in tracks]
    made.add_plays(
        (made.tracks[track], now - day * DAY - chance.randrange(2000) * SLOT, str(person))
        for track, day, person in zip(tracks, days, people, strict=True)
    )
    made.add_plays((made.tracks[0], now - minute * 60_000_000, f"now {minute}") for minute in range(30))
    _add_durations(made, now, chance)
    for name in ("Album 2", "Album 3", "Album 4"):  # without tracks
        AlbumArtist.create(album=Album.create(name=name, created_at=now).id, artist=made.artists[0], position=0)
    given = [(made.tracks[chance.randrange(4)], now - chance.randrange(300) * DAY) for _ in range(50)]
    made.give(given[:25], given[25:])
    correct(made, now)
    return made


def _fill_other(now: int, made: Catalog) -> None:
    """Create the catalog of another account, and an artist of it on the third track and second album."""
    other = catalog(now)
    TrackArtist.create(track=made.tracks[2], artist=other.artists[0], position=7)
    AlbumArtist.create(album=made.albums[1], artist=other.artists[0], position=7)


def _add_durations(made: Catalog, now: int, chance: random.Random) -> None:
    """Record plays with a duration, also on the first days of both albums."""
    Track.update(duration=200_000).where(Track.id.in_(made.tracks)).execute()
    Album.update(release_date="2026-02-10").where(Album.id == made.albums[0]).execute()
    Album.update(release_date="2026-02-20").where(Album.id == made.albums[1]).execute()
    AlbumArtist.create(album=made.albums[1], artist=made.artists[0], position=1)
    record(
        PlayOf(
            made.tracks[(0, 3, 1, 0, 2)[number % 5]],
            now - chance.randrange(24 * 60) * DAY // 60 // 24 * 40,
            f"long {number % 40}",
            chance.randrange(210_000),
        )
        for number in range(240)
    )
