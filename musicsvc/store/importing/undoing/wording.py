"""The numbers of rows that an undo of an import deletes, restores and keeps, in words."""

from collections.abc import Mapping
from typing import Any

from musicsvc.store.models import Album, Artist, Genre, Playlist, Tag, Track
from musicsvc.wording import cut, quantity, some_of

Kept = Mapping[tuple[str, str], list[int]]  # ids by table and reason
TABLES = ("account", "album", "artist", "follow", "genre", "playlist", "playlist_track", "tag", "track")
NOUNS = {table: f"{table}s" for table in TABLES} | {"playlist_track": "entries"}
MOST_IDS = 12  # per line
NAMED: dict[str, Any] = {
    "album": Album,
    "artist": Artist,
    "genre": Genre,
    "playlist": Playlist,
    "tag": Tag,
    "track": Track,
}


def quantities(counts: Mapping[str, int]) -> str:
    """Return the numbers of rows by table in words, without those that are 0."""
    words = {"playlist_track": "entry"}
    found = {words.get(table, table): (count, NOUNS.get(table)) for table, count in counts.items() if count}
    return ", ".join(quantity(count, word, plural) for word, (count, plural) in found.items())


def kept_rows(kept: Kept) -> list[dict[str, Any]]:
    return [{"kind": NOUNS[table], "reason": reason, "ids": sorted(ids)} for (table, reason), ids in kept.items()]


def kept_lines(kept: Kept, verb: str, names: Mapping[tuple[str, int], str] | None = None) -> list[str]:
    """Return a line for each kind and reason, with the names of the kept rows, or the ids of those without a name."""
    lines = []
    for (table, reason), ids in kept.items():
        shown = [(names or {}).get((table, each)) or str(each) for each in sorted(ids)]
        lines.append(f"{verb} {NOUNS[table]} ({reason}): {some_of(shown, MOST_IDS)}.")
    return lines


def names_of(kept: Kept) -> dict[tuple[str, int], str]:
    """Return the names of the kept rows that `kept_lines` shows, in quotation marks, by table and id."""
    found: dict[tuple[str, int], str] = {}
    for (table, _), ids in kept.items():
        if (model := NAMED.get(table)) is not None:
            rows = model.select(model.id, model.name).where(model.id.in_(sorted(ids)[:MOST_IDS]))
            found |= {(table, number): f"“{cut(name)}”" for number, name in rows.tuples().iterator()}
    return found
