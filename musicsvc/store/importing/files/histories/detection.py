"""Detect from the first bytes of a file which service exported it. Files of unknown origin are treated as tables."""

import csv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.histories.known import FORMATS
from musicsvc.store.importing.files.histories.logs import COMMENTS
from musicsvc.store.importing.files.quoting import SEPARATORS

HEAD = 65_536  # bytes
PLAYBACK = (
    "is a playback log of Rockbox, which has files in place of artists and titles."
    " Make a .scrobbler.log of it with Rockbox's plugin for Last.fm, and import that."
)
LOVED = "lists loved tracks without the times of plays. Import the listening history instead."


def history_of(path: Path) -> str | None:
    """Return the format of a listening history, or None for a plain table. Raises Failure for what has no plays."""
    head = formats.decoded(formats.head_of(path, HEAD)[0]).lstrip()
    if head[:1] in {"[", "{"}:
        return _json(head, path)
    lines = head.splitlines()
    first = next((line for line in lines if line and not line.startswith(COMMENTS)), "")
    if [part.isdigit() for part in first.split(":", 3)] == [True, True, True, False]:
        raise Failure(f"{path} {PLAYBACK}")
    headings = (name for name, each in FORMATS.items() if each.heading and head.startswith(each.heading))
    return next(headings, None) or _table(lines)


def _json(head: str, path: Path) -> str | None:
    if '"lovedtracks"' in head:
        raise Failure(f"{path} {LOVED}")
    for name, each in FORMATS.items():
        if head[0] in each.first and any(all(f'"{key}"' in head for key in keys.split()) for keys in each.keys):
            return name
    return None


def _table(lines: Sequence[str]) -> str | None:
    commented = bool(lines) and lines[0].startswith(COMMENTS) and lines[0][1:2] not in {*SEPARATORS}
    rows = {sign: _first_row(lines, sign) for each in FORMATS.values() for sign in each.separators}
    for name, each in FORMATS.items():
        if any(each.header(rows[sign]) and "played_at" not in rows[sign] for sign in each.separators):
            return name
    return "librefm" if commented else None


def _first_row(lines: Sequence[str], separator: str) -> Sequence[str]:
    rows = csv.reader((line for line in lines if not line.startswith(COMMENTS)), delimiter=separator)
    with suppress(csv.Error):
        return [cell.strip() for cell in next(rows, [])]
    return []
