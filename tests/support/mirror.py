"""A client that keeps a copy of the catalog, as docs/api.md says."""

from typing import Any

from tests.support.serving import Client

NOUNS = ("artist", "album", "track")
COUNTERS = {"plays", "likes_count", "reposts_count", "albums_count", "tracks_count"}
Catalog = dict[tuple[str, int], Any]


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
