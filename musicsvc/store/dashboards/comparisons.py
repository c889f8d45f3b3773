"""Compare the figures of several tracks, albums or artists in one window."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from musicsvc.store.insights import charts, export_rows, figures
from musicsvc.store.insights.figures import Figures
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.subjects import Subject

MOST = 5  # subjects, each with a line in one chart


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


def build(subjects: Sequence[Subject], window: Window) -> list[ComparedSubject]:
    """Return the subjects, which must be of one kind, with their figures in the window, in the same order."""
    if not subjects:
        return []
    kind, ids = subjects[0].kind, sorted(each.id for each in subjects)
    of, names = figures.of_several(kind, ids, window), export_rows.names(kind, ids)
    artists = export_rows.authors(kind, ids)
    return [
        ComparedSubject(
            each,
            names[each.id],
            tuple(artists.get(each.id, ())),
            of[each.id],
            charts.by_day(each, window.numbers),
        )
        for each in subjects
    ]
