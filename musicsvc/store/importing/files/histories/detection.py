"""Detect from the first bytes of a file which service exported it. Files of unknown origin are treated as tables."""

import csv
import re
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats

HEAD = 65_536  # bytes
MINUTE = re.compile(r"[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4},? [0-9]{2}:[0-9]{2}")
COMMENTS = ("#", "+ACM-")
# For each JSON format: the possible first characters, and keys that must all occur in the first HEAD bytes.
JSON_KINDS = (
    ("spotify", "[", ("master_metadata_track_name", "ms_played")),
    ("spotify-account", "[", ("endTime", "msPlayed", "trackName")),
    ("listenbrainz", "[{", ("track_metadata",)),
    ("lastfm", "[{", ("#text", "artist", "track", "image")),
    ("panoscrobbler", "{", ("timeMs", "track", "artist")),
    ("maloja", "{", ("scrobbles",)),
)
LOVED = "lists loved tracks without the times of plays. Import the listening history instead."


def history_of(path: Path) -> str | None:
    """Return the format of a listening history, or None for a plain table. Raises Failure for a loved-tracks export."""
    head = formats.decoded(formats.head_of(path, HEAD)[0]).lstrip()
    if head.startswith("#AUDIOSCROBBLER/"):
        return "rockbox"
    if head[:1] in {"[", "{"}:
        return _json(head, path)
    return _table(head.splitlines())


def _json(head: str, path: Path) -> str | None:
    if '"lovedtracks"' in head:
        raise Failure(f"{path} {LOVED}")
    for name, begins, words in JSON_KINDS:
        if head[0] in begins and all(f'"{word}"' in head for word in words):
            return name
    return None


def _table(lines: list[str]) -> str | None:
    commented = bool(lines) and lines[0].startswith(COMMENTS)
    rows = csv.reader(line for line in lines if not line.startswith(COMMENTS))
    try:
        first = [cell.strip() for cell in next(rows, [])]
    except csv.Error:
        return None
    names = {name.lower() for name in first}
    if {"uts", "artist", "track"} <= names:
        return "lastfm-csv"
    if {"artist", "track", "time"} <= names and "played_at" not in names:
        return "librefm"
    if first[:1] == ["Playlist Title"] or {"date-time", "artist", "song"} <= names:
        return "spinitron"
    if len(first) == 4 and MINUTE.fullmatch(first[3]):  # noqa: PLR2004 - artist, album, title, time
        return "lastfm-to-csv"
    return "librefm" if commented else None
