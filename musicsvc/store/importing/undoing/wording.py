"""The numbers of rows that an undo of an import deletes, restores and keeps, in words."""

from collections.abc import Mapping
from typing import Any

from musicsvc.wording import quantity, some_of

Kept = Mapping[tuple[str, str], list[int]]  # ids by table and reason
NOUNS = {
    "account": "accounts",
    "album": "albums",
    "artist": "artists",
    "follow": "follows",
    "genre": "genres",
    "playlist": "playlists",
    "playlist_track": "entries",
    "tag": "tags",
    "track": "tracks",
}
MOST_IDS = 12  # per line


def quantities(counts: Mapping[str, int]) -> str:
    """Return the numbers of rows by table in words, without those that are 0."""
    words = {"playlist_track": "entry"}
    found = {words.get(table, table): (count, NOUNS.get(table)) for table, count in counts.items() if count}
    return ", ".join(quantity(count, word, plural) for word, (count, plural) in found.items())


def kept_rows(kept: Kept) -> list[dict[str, Any]]:
    return [{"kind": NOUNS[table], "reason": reason, "ids": sorted(ids)} for (table, reason), ids in kept.items()]


def kept_lines(kept: Kept, verb: str) -> list[str]:
    """Return a line for each kind and reason, with the ids of the kept rows."""
    shown = [(row, some_of([*map(str, row["ids"])], MOST_IDS)) for row in kept_rows(kept)]
    return [f"{verb} {row['kind']} ({row['reason']}): {ids}." for row, ids in shown]
