"""Compare the figures of several tracks, albums or artists in one window."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.dashboards import catalog_search
from musicsvc.store.dashboards.catalog_search import Result
from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import charts, export_rows, figures, rankings
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import AlbumArtist, Artist
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.subjects import ALBUM, Subject

MOST = 5  # subjects, each with a line in one chart
PROPOSED = 5


class ComparedSubject(NamedTuple):
    """A track, album or artist with its figures, and its plays and distinct listeners of each day."""

    subject: Subject
    name: str
    artists: tuple[str, ...]
    figures: Figures
    days: list[tuple[int, int]]


def check(subjects: Iterable[Subject], *, user_id: int) -> None:
    """Raise NotFound if one of the subjects does not exist, Forbidden if the account does not manage it."""
    for each in subjects:
        figures.check_manager(each, user_id)


def propose(kind: int, chosen: Sequence[Subject], *, user_id: int, window: Window) -> list[Result]:
    """Return what else to compare: what the account has most played, beside albums first those of their artists.

    Those without plays in the window come last, newest first.
    """
    managed = Scope(manager=user_id).ids(kind)
    taken = [each.id for each in chosen]
    found = dict.fromkeys(taken)
    near = {album for (album,) in _albums_beside(taken, user_id)} if taken and kind == ALBUM else set()
    for ids in (near, managed):
        found |= dict.fromkeys(rankings.most_played(kind, ids, window, PROPOSED + len(taken)))
        found |= dict.fromkeys(heapq.nlargest(PROPOSED + len(taken), ids))
    return catalog_search.results(kind, [*found][len(taken) :][:PROPOSED], window)


@compiled
def _albums_beside(albums: Sequence[int], user_id: int) -> Any:
    """Select the albums of those artists of the albums that the account manages."""
    theirs = AlbumArtist.alias()
    artists = theirs.select(theirs.artist).join(Artist).where(theirs.album.in_(albums), managed_by(user_id))
    return AlbumArtist.select(AlbumArtist.album).distinct().where(AlbumArtist.artist.in_(artists))


def build(subjects: Sequence[Subject], window: Window) -> list[ComparedSubject]:
    """Return the subjects, which must be of one kind, with their figures in the window, in the same order."""
    if not subjects:
        return []
    kind, ids = subjects[0].kind, sorted(each.id for each in subjects)
    of, titled = figures.of_several(kind, ids, window), export_rows.titled(kind, ids)
    return [ComparedSubject(*titled[each.id], of[each.id], charts.by_day(each, window.numbers)) for each in subjects]
