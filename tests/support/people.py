"""Accounts that edit playlists together, and tracks for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from musicsvc.clock import Clock
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.support.response_checks import CheckedClient
from tests.support.serving import Client, person


class Person(NamedTuple):
    """An account with API access, and a client with its token."""

    id: int
    ask: Client

    async def playlist(self, **body: Any) -> int:
        """Create a playlist and return its id."""
        made = await self.ask.post("playlists", {"name": "Rags"} | body)
        return int(made.json["playlist"]["id"])

    async def tracks(self, playlist: int) -> list[int]:
        """Return the ids of the playlist's tracks, in order."""
        path, page, ids = f"playlists/{playlist}/tracks?perPage=100&page=", 1, list[int]()
        while rows := (await self.ask.get(f"{path}{page}")).json["pagination"]["data"]:
            ids += [row["id"] for row in rows]
            page += 1
        return ids

    async def listed(self) -> list[int]:
        """Return the ids of the first page of the account's playlists."""
        return [row["id"] for row in (await self.ask.get("playlists")).json["pagination"]["data"]]

    async def shares(self, playlist: int, other: Person) -> None:
        """Invite the other account, which accepts."""
        await self.ask.post(f"playlists/{playlist}/invite", {"user_id": other.id})
        assert (await other.ask.post(f"playlists/{playlist}/accept-invite")).status == 200


class People(NamedTuple):
    """An owner and two others."""

    ann: Person
    ben: Person
    cleo: Person


def join(client: Client, store: Store, clock: Clock, name: str, domain: str = "label.test") -> Person:
    """Create an account with a client of the same server."""
    user_id, token = person(store, clock, f"{name}@{domain}")
    return Person(user_id, CheckedClient(client.session, client.root, token))


def people(client: Client, store: Store, clock: Clock, domain: str = "label.test") -> People:
    """Three new accounts."""
    return People(*(join(client, store, clock, name, domain) for name in ("ann", "ben", "cleo")))


def make_tracks(store: Store, count: int) -> list[int]:
    """Create tracks and return their ids."""

    def make() -> list[int]:
        return [Track.create(name=f"Rag {number}", duration=60_000, created_at=0).id for number in range(count)]

    return store.write(make).result()
