"""The example of docs/insights.md, played and requested."""

import json
import re
from pathlib import Path
from typing import Any

from musicsvc.clock import MovableClock, parse
from musicsvc.server.routes.paths import INSIGHTS
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID, PlayRow
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners
from tests.support.playlist_world import CheckedClient
from tests.support.serving import Client

DOCS = Path(__file__).parents[3] / "docs" / "insights.md"
PLAYED = re.compile(r"^\| (\d{4}-\d\d-\d\d \d\d:\d\d) \| (\d) \| (\w+) \|$", re.MULTILINE)
ASKED = re.compile(r"^`GET ([^`]+)`\n\n```json\n(.+?)^```$", re.MULTILINE | re.DOTALL)


def played(text: str, now: int) -> str:
    """Store the plays of the example; return the token of the artist's manager."""
    user = users.create("ann@label.test", api_access=True, now=now)
    Artist.create(name="Scott", manager=user, created_at=now)
    Album.create(name="Rags", created_at=now)
    AlbumArtist.create(album=1, artist=1, position=0)
    for number, name in enumerate(("Rag", "March"), 1):
        Track.create(name=name, duration=1, album=1, created_at=now)
        TrackArtist.create(track=number, artist=1, position=0)
    ids = listeners.ensure([name for _, _, name in PLAYED.findall(text)])
    ingest.record(
        PlayRow(parse(f"{at}Z") // SLOT, int(track), ids[name], WITHOUT_ID, parse(f"{at}Z"), None, 0)
        for at, track, name in PLAYED.findall(text)
    )
    return tokens.create(user, "test", now=now)[1]


async def test_the_example_has_the_documented_answers(anonymous: Client, store: Store, clock: MovableClock) -> None:
    text = DOCS.read_text("utf-8")
    token = store.write(lambda: played(text, clock.now())).result()
    client = CheckedClient(anonymous._session, anonymous.root, token)

    found: dict[str, Any] = {
        path: (await client.get(f"{INSIGHTS}{path}")).json["data"] for path, _ in ASKED.findall(text)
    }

    assert found == {path: json.loads(block) for path, block in ASKED.findall(text)}
    assert len(found) == 4
    assert len(PLAYED.findall(text)) == 8
