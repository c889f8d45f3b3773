"""The example of docs/playlists.md, sent row by row."""

import json
import re
from pathlib import Path

from musicsvc.clock import MovableClock
from musicsvc.store.engine.store import Store
from tests.support.people import make_tracks, people
from tests.support.serving import Client

DOCS = Path(__file__).parents[3] / "docs" / "playlists.md"
ROW = re.compile(r"\| (ann|ben) \| `([A-Z]+) ([^`]+)` \| (?:`([^`]+)` )?\| (\d{3}) \|")


async def test_the_example_in_the_documentation_is_answered_as_it_says(
    anonymous: Client, store: Store, clock: MovableClock
) -> None:
    ann, ben, _ = people(anonymous, store, clock)
    rows = ROW.findall(DOCS.read_text("utf-8"))
    values = {"{ben}": ben.id, "{track}": make_tracks(store, 1)[0]}

    told = []
    for who, method, path, body, _ in rows:
        for name, value in values.items():
            path, body = path.replace(name, str(value)), body.replace(name, str(value))  # noqa: PLW2901 - the filled-in form
        answer = await {"ann": ann, "ben": ben}[who].ask(method, path, json.loads(body) if body else None)
        values |= {"{playlist}": answer.json["playlist"]["id"]} if "playlist" in answer.json else {}
        told.append(answer.status)

    assert told == [int(status) for *_, status in rows]
    assert len(told) == 10
