"""A client that follows the changes of the catalog has the same copy as one that reads all lists again."""

import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.catalog import artists
from musicsvc.store.engine.store import Store
from tests.conftest import NOW
from tests.support.catalog_import import import_rows
from tests.support.merges import merge
from tests.support.mirror import Mirror, walk
from tests.support.serving import Client
from tests.support.undoing import undone


class Labour:
    """Random work on a catalog, in every way that exists."""

    def __init__(self, client: Client, store: Store, folder: Path, seed: int) -> None:
        self.client, self.store, self.folder = client, store, folder
        self.chance = random.Random(seed)
        self.made = 0
        self.runs: list[int] = []
        self.done: list[str] = []

    async def work(self) -> None:
        """Do one thing."""
        ways: list[Callable[[], Awaitable[Any]]] = [
            self.create_artist,
            self.create_album,
            *[self.create_track] * 3,
            *[self.edit] * 4,
            self.delete,
            self.merge,
            self.verify,
            self.import_rows,
            self.undo,
        ]
        way = self.chance.choice(ways)
        self.done.append(way.__name__)
        await way()

    async def pick(self, noun: str, most: int = 1) -> list[int]:
        rows = [number for kind, number in await walk(self.client) if kind == noun]
        return self.chance.sample(rows, min(len(rows), most))

    def name(self) -> str:
        self.made += 1
        return f"Name {self.made}"

    async def create_artist(self) -> None:
        await self.client.post("artists", {"name": self.name()})

    async def create_album(self) -> None:
        for artist in await self.pick("artist"):
            body = {"name": self.name(), "artist_id": artist, "tags": [self.chance.choice("abc")]}
            await self.client.post("albums", body)

    async def create_track(self) -> None:
        body = {"name": self.name(), "duration": 7, "artists": await self.pick("artist", 2), "genre": "Jazz"}
        if album := await self.pick("album"):
            body["album_id"] = album[0]
        await self.client.post("tracks", body)

    async def edit(self) -> None:
        noun = self.chance.choice(("artist", "album", "track", "track"))
        image = self.chance.choice((None, "https://img.test/a.png", "https://img.test/b.png"))
        bodies: dict[str, list[dict[str, Any]]] = {
            "artist": [{"name": self.name()}, {"image_small": image}],
            "album": [{"name": self.name()}, {"image": image}, {"label": self.name()}],
            "track": [
                {"bpm": self.chance.randint(20, 400)},
                {"image": image},
                {"tags": [self.chance.choice("abc")]},
                {"genre": self.chance.choice(("Jazz", "Rock"))},
                {"artists": await self.pick("artist", 2)},
                {"album_id": next(iter(await self.pick("album")), None)},
            ],
        }
        for number in await self.pick(noun):
            await self.client("PATCH", f"{noun}s/{number}", self.chance.choice(bodies[noun]))

    async def delete(self) -> None:
        noun = self.chance.choice(("artist", "album", "track"))
        for number in await self.pick(noun):
            await self.client.delete(f"{noun}s/{number}")

    async def merge(self) -> None:
        noun: Any = self.chance.choice(("artist", "album", "track"))
        if len(two := await self.pick(noun, 2)) == 2:
            merge(self.store, noun, *two)

    async def verify(self) -> None:
        for number in await self.pick("artist"):
            verified = self.chance.random() < 0.5
            self.store.write(partial(artists.verify, number, verified=verified, now=NOW)).result()

    async def import_rows(self) -> None:
        rows = [
            {"track": f"Song {number}", "artist": f"Artist {number % 3}", "album": f"Album {number % 2}", "bpm": 90}
            for number in self.chance.sample(range(9), 4)
        ]
        done = import_rows(self.store, self.folder / "rows.jsonl", rows, user="ann@label.test")
        assert done.run is not None
        self.runs.append(done.run)

    async def undo(self) -> None:
        if self.runs:
            undone(self.store, self.runs.pop())


@pytest.mark.parametrize(
    "seed", [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
async def test_a_copy_that_follows_the_changes_equals_the_lists(
    client: Client, store: Store, tmp_path: Path, seed: int
) -> None:
    labour = Labour(client, store, tmp_path, seed)
    for _ in range(15):
        await labour.work()
    mirror, late = Mirror(client), Mirror(client)
    await mirror.begin()
    await late.begin()
    told = set()
    for _ in range(60):
        await labour.work()
        told |= {change.rpartition(" ")[2] for change in await mirror.follow()}
        assert mirror.objects == await walk(client), labour.done
    await late.follow()
    assert late.objects == mirror.objects
    assert told == {"created", "updated", "deleted", "merged"}
