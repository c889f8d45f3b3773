"""Compare the figures of several tracks, albums or artists in one window."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from musicsvc.store.insights import charts, export_rows, figures
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.subjects import Subject

MOST = 5  # subjects, each with a line in one chart


class ComparedSubject(NamedTuple):
    """A track, album or artist with its figures, and its plays and distinct listeners of each day.

    `first_plays`: the day of the first play, if pages show it instead of the growth.
    """

    subject: Subject
    name: str
    artists: tuple[str, ...]
    figures: Figures
    days: list[tuple[int, int]]
    first_plays: int | None


def check(subjects: Iterable[Subject], *, user_id: int) -> None:
    """Raise NotFound if one of the subjects does not exist, Forbidden if the account does not manage it."""
    for each in subjects:
        figures.check_manager(each, user_id)


def build(subjects: Sequence[Subject], window: Window) -> list[ComparedSubject]:
    """Return the subjects, which must be of one kind, with their figures in the window, in the same order."""
    if not subjects:
        return []
    kind, ids = subjects[0].kind, sorted(each.id for each in subjects)
    of, first = figures.of_several(kind, ids, window), first_plays.by_id(kind, ids)
    names, artists = export_rows.names(kind, ids), export_rows.authors(kind, ids)
    return [
        ComparedSubject(
            each,
            names[each.id],
            tuple(artists.get(each.id, ())),
            of[each.id],
            charts.by_day(each, window.numbers),
            first_plays.instead_of_growth(window, first.get(each.id)),
        )
        for each in subjects
    ]
