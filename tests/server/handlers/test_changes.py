"""A client that follows the changes of the catalog has the same copy as one that reads all lists again."""

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from musicsvc.store.catalog import artists
from musicsvc.store.engine.store import Store
from tests.conftest import NOW
from tests.server.handlers.test_editing import FULL
from tests.support.catalog_import import import_rows
from tests.support.merges import merge
from tests.support.serving import Client, StartServer
from tests.support.undoing import undone

DOCS = Path(__file__).resolve().parents[3] / "docs"
NOUNS = ("artist", "album", "track")
COUNTERS = {"plays", "likes_count", "reposts_count", "albums_count", "tracks_count"}
Catalog = dict[tuple[str, int], Any]


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


@pytest.fixture(autouse=True)
def _alone(store: Store) -> None:
    """Let no response wait for other nodes."""
    store.lag = 0.0


@pytest.mark.on_both
@pytest.mark.parametrize(
    ("seed", "turns"),
    [
        (1, 20),
        pytest.param(2, 60, marks=pytest.mark.slow),
        *(pytest.param(n, 60, marks=pytest.mark.long) for n in (3, 4)),
    ],
)
async def test_a_copy_that_follows_the_changes_equals_the_lists(
    client: Client, store: Store, tmp_path: Path, seed: int, turns: int
) -> None:
    labour = Labour(client, store, tmp_path, seed)
    for _ in range(15):
        await labour.work()
    mirror, late = Mirror(client), Mirror(client)
    await mirror.begin()
    await late.begin()
    told = set()
    for _ in range(turns):
        await labour.work()
        told |= {change.rpartition(" ")[2] for change in await mirror.follow()}
        assert mirror.objects == await walk(client), labour.done
    await late.follow()
    assert late.objects == mirror.objects
    assert told >= {"created", "updated", "deleted"}
    assert mirror.merged or turns < 60


@pytest.mark.on_both
async def test_each_field_is_a_change_if_it_is_shown(client: Client) -> None:
    artist, album, track = await make(client)
    for noun, number in (("artist", artist), ("album", album), ("track", track)):
        for field, value in FULL[noun].items():
            mirror = Mirror(client)
            await mirror.begin()
            new = {"artists": [artist, 2], "artist_id": 2, "album_id": album}.get(field, value)
            assert (await client("PATCH", f"{noun}s/{number}", {field: new})).status == 200
            told = await mirror.follow()
            hidden = (noun, field) == ("artist", "description")
            assert (f"{noun} {number} updated" in told) is not hidden, field
            assert mirror.objects == await walk(client)


async def make(client: Client) -> tuple[int, int, int]:
    """Create an artist and another one, an album and a track."""
    first, _ = [(await client.post("artists", {"name": name})).json["artist"]["id"] for name in "ab"]
    album = (await client.post("albums", {"name": "c", "artist_id": first})).json["album"]["id"]
    body = {"name": "d", "duration": 1, "artists": [first], "explicit": True}
    return first, album, (await client.post("tracks", body)).json["track"]["id"]


async def test_a_merged_object_names_the_one_that_has_its_place(client: Client, store: Store) -> None:
    artist, _, track = await make(client)
    mirror = Mirror(client)
    await mirror.begin()
    merge(store, "artist", artist, 2)
    assert await mirror.follow() == ["track 1 updated", "album 1 updated", "artist 1 merged"]
    assert mirror.merged == {("artist", artist): 2}
    assert mirror.objects["track", track]["artists"] == [2]


async def test_what_was_merged_twice_is_one_change(client: Client, store: Store) -> None:
    artist, album, track = await make(client)
    body = {"name": "e", "duration": 2, "artists": [artist]}
    other, last = [(await client.post("tracks", body | more)).json["track"]["id"] for more in ({"album_id": album}, {})]
    mirror = Mirror(client)
    await mirror.begin()
    merge(store, "track", other, track)  # takes the album, so that track is found as it was before, too
    merge(store, "track", track, last)
    seen = await mirror.follow()
    assert sorted(seen) == ["album 1 updated", *(f"track {each}" for each in ("1 merged", "2 merged", "3 updated"))]
    assert mirror.merged == {("track", other): last, ("track", track): last}


@pytest.mark.parametrize(
    "cursor", ["", "x", "%C3%A9", "AAAA", "3q2-777vEjQAAAAAAAAAKg", "3q2-777vEjQAAAAAAAAAKg%3D%3D", "A" * 3000]
)
async def test_a_cursor_that_is_none_is_refused(client: Client, cursor: str) -> None:
    answer = await client.get(f"changes?since={cursor}")
    assert answer.status == 422
    assert answer.json["errors"].keys() == {"since"}
    assert "Begin again without since" in answer.json["errors"]["since"]


async def test_changes_need_a_token_and_one_cursor(client: Client) -> None:
    assert (await client.holding(None).get("changes")).status == 401
    now = (await client.get("changes")).json
    assert (now["changes"], now["has_more"]) == ([], False)
    twice = await client.get(f"changes?since={now['cursor']}&since={now['cursor']}")
    assert (twice.status, twice.json["errors"].keys()) == (422, {"since"})


async def test_the_loop_of_the_docs_keeps_a_copy(client: Client) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "api.md").read_text("utf-8"), re.DOTALL)
    artist, album, track = await make(client)

    def get(path: str) -> Any:
        request = Request(client.root + path, headers={"Authorization": f"Bearer {client.token}"})  # noqa: S310 - the test's own server
        try:
            with urlopen(request) as answer:  # noqa: S310 - as above
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404:
                return None
            raise

    names: dict[str, Any] = {"get": get, "copy": {("track", track): "old"}}
    exec(code, names)  # noqa: S102 - our own documentation
    cursor = (await client.get("changes")).json["cursor"]
    await client("PATCH", f"artists/{artist}", {"name": "Renamed"})
    await client.delete(f"tracks/{track}")
    await client("PATCH", f"albums/{album}", {"label": "Label"})
    cursor = await asyncio.to_thread(names["follow"], cursor)
    assert {key: row["name"] for key, row in names["copy"].items()} == {
        ("artist", artist): "Renamed",
        ("album", album): "c",
    }
    assert (await client.get(f"changes?since={cursor}")).json["changes"] == []


@pytest.mark.only_on("postgres")
@pytest.mark.slow
async def test_what_another_machine_answers_after_a_change_was_listed_is_not_older(
    client: Client, store: Store, start_server: StartServer, tmp_path: Path
) -> None:
    store.lag = type(store).lag
    artist, _, _ = await make(client)
    (tmp_path / "shared").mkdir()
    from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: PLC0415 - not installed for runs on SQLite

    with PostgresStore(store.url, tmp_path / "shared") as elsewhere:
        other = (await start_server(store=elsewhere)).holding(client.token)
        for turn in range(5):
            cursor = (await client.get("changes")).json["cursor"]
            name = f"Name {turn}"
            for _ in range(20):
                await other.get(f"artists/{artist}")  # until it comes from memory
            await client("PATCH", f"artists/{artist}", {"name": name})
            told = (await client.get(f"changes?since={cursor}")).json["changes"]
            assert [change["id"] for change in told] == [artist]
            assert (await other.get(f"artists/{artist}")).json["artist"]["name"] == name


class Mirror:
    """A copy of the catalog; `merged` has the ids into which others were merged."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.cursor = ""
        self.objects: Catalog = {}
        self.merged: dict[tuple[str, int], int] = {}

    async def begin(self) -> None:
        """Take a cursor, then read the lists."""
        answer = await self._client.get("changes")
        assert answer.json["changes"] == []
        self.cursor = answer.json["cursor"]
        self.objects = await walk(self._client)

    async def follow(self) -> list[str]:
        """Read the changes and what changed. Return the changes, such as `track 7 updated`."""
        seen, more = [], True
        while more:
            answer = await self._client.get(f"changes?since={self.cursor}")
            assert answer.status == 200, answer.body
            for change in answer.json["changes"]:
                await self._apply(change)
                seen.append(f"{change['model_type']} {change['id']} {change['change']}")
            self.cursor, more = answer.json["cursor"], answer.json["has_more"]
        return seen

    async def _apply(self, change: dict[str, Any]) -> None:
        key = noun, number = change["model_type"], change["id"]
        if change["change"] == "merged":
            self.merged[key] = change["merged_into"]
        if change["change"] in {"deleted", "merged"}:
            self.objects.pop(key, None)
            return
        answer = await self._client.get(f"{noun}s/{number}")
        if answer.status == 200:
            self.objects[key] = own(answer.json[noun])
        else:
            assert answer.status == 404  # a later change says so


async def walk(client: Client) -> Catalog:
    """Return all objects of the lists."""
    found: Catalog = {}
    for noun in NOUNS:
        page, last = 1, 1
        while page <= last:
            answer = (await client.get(f"{noun}s?perPage=100&page={page}")).json
            rows = answer["pagination" if noun == "track" else f"{noun}s"]
            found |= {(noun, row["id"]): own(row) for row in rows["data"]}
            page, last = page + 1, rows["last_page"]
    return found


def own(row: dict[str, Any]) -> dict[str, Any]:
    """Return what belongs to an object: no counters, and of objects in it the ids only."""
    shown = {name: value for name, value in row.items() if name not in COUNTERS}
    for name in shown.keys() & {"artists", "tracks", "genres", "tags"}:
        shown[name] = [each["id"] for each in shown[name]]
    return shown
