"""The example of docs/plays.md is what the service answers."""

import json
import re
from pathlib import Path

from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.support.serving import Client

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "plays.md").read_text("utf-8")


async def test_the_example_is_answered_as_the_page_says(client: Client, store: Store) -> None:
    sent, expected = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    store.write(lambda: Track.create(name="Rag", duration=1, created_at=1)).result()
    answer = await client.post("plays", sent)
    assert (answer.status, answer.json) == (201, expected)
