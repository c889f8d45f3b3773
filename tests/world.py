"""A world with many of everything that can be listed, made through the API.

ann ─┬─ artist 1 ─┬─ albums 1 … n
     │            └─ tracks 1 … n, all on album 1; each by artist 1 and one of its own, with a genre and two tags
     │                    └─ track 1 has n comments, by the others
     ├─ playlists 1 … n, the first with all tracks
     ├─ collections 1 … n, the first with all tracks, the others with one each
     ├─ conversations 1 … n, each with one of the others, the first with n messages
     └─ follows the others, and they her
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.serving import person

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.store.database import Store
    from tests.serving import Client


async def fill(ann: Client, store: Store, clock: Clock, count: int) -> None:
    """Make the world, with `count` of each kind, in an empty database that has only ann."""
    others = [person(store, clock, f"person{number}@label.test") for number in range(count)]
    await _send(ann, "artists", [{"name": f"Artist {number}"} for number in range(count + 1)])
    await _send(ann, "albums", [{"name": f"Album {number}", "artist_id": 1} for number in range(count)])
    await _send(ann, "tracks", [_track(number) for number in range(count)])
    tracks = list(range(1, count + 1))
    await _send(ann, "collections", [{"name": "All", "track_ids": tracks}])
    await _send(ann, "collections", [{"name": "One", "track_ids": [1]}] * (count - 1))
    await _send(ann, "playlists", [{"name": f"Playlist {number}"} for number in range(count)])
    await _send(ann, "playlists/1/tracks/add", [{"ids": tracks}])
    await _send(ann, "messaging/conversations", [{"user_ids": [other]} for other, _ in others])
    messages = [{"conversation_id": 1, "message_text": f"Message {number}"} for number in range(count)]
    await _send(ann, "messaging/messages", messages)
    await asyncio.gather(*(_befriend(ann, ann.holding(token), other) for other, token in others))


async def _befriend(ann: Client, other: Client, other_id: int) -> None:
    await _send(ann, f"users/{other_id}/follow", [{}])
    await _send(other, "users/1/follow", [{}])
    await _send(other, "tracks/1/comments", [{"content": f"I am {other_id}", "position": other_id % 100}])


def _track(number: int) -> dict[str, Any]:
    names = {"name": f"Track {number}", "genre": f"Genre {number}", "tags": [f"tag {number}", f"word {number}"]}
    return names | {"duration": 1000 + number, "artists": [1, number + 2], "album_id": 1}


async def _send(client: Client, path: str, bodies: list[dict[str, Any]]) -> None:
    """Send them at once; which of them has which id does not matter."""
    for answer in await asyncio.gather(*(client.post(path, body) for body in bodies)):
        assert answer.status in {200, 201}, (path, answer.body)
