"""Search for tracks, albums and artists by name, ISRC or UPC, among those that an account manages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.store.dashboards.dashboards import Related
from musicsvc.store.engine import sql
from musicsvc.store.engine.names.name_index import fold
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 20  # results of each kind
MANAGED = {
    ARTIST: "SELECT id, name, NULL FROM artist WHERE manager_id = ?",
    **{
        kind: f"""
            SELECT DISTINCT t.id, t.name, t.{code} FROM artist a JOIN {noun}_artist l ON l.artist_id = a.id
            JOIN {noun} t ON t.id = l.{noun}_id WHERE a.manager_id = ?
        """  # noqa: S608 - our own nouns
        for noun, kind, code in (("album", ALBUM, "upc"), ("track", TRACK, "isrc"))
    },
}


def find(text: str, user_id: int) -> list[Related]:
    """Return artists, albums and tracks of the account with the text in their names, ignoring case and accents.

    Of each kind, results with the text as their ISRC (with or without hyphens) or UPC come first, then names that begin
    with the text, then all other names. Within each of these groups, shorter names come first.
    """
    wanted = fold(text)
    found: list[Related] = []
    for kind in MANAGED if wanted else ():
        best = sorted(_matching(kind, wanted, user_id))[:MOST]
        found += [Related(Subject(kind, each), name) for *_, name, each in best]
    return found


def _matching(kind: int, wanted: str, user_id: int) -> Iterator[tuple[bool, bool, int, str, int]]:
    spelled = wanted.replace("-", "").upper()
    for each, name, code in sql.stream_rows(MANAGED[kind], user_id):
        folded = fold(name)
        if wanted in folded or code == spelled:
            yield code != spelled, not folded.startswith(wanted), len(folded), name, each
