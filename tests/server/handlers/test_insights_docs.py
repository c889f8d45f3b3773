"""The examples of docs/insights.md and docs/listening.md, played and requested."""

import json
import re
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock, parse
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client

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
