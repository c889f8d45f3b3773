"""Play and listener counts of a subject, which are read within a unit, and the counting of blocks."""

from functools import partial

from musicsvc.store.engine.store import Store
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.rollups.reader import PlayStats, Reader
from musicsvc.store.plays.subjects import Subject

ALL_TIME = 1 << 40  # the end of a span that has every day


def roll_up(store: Store, at_once: int = 1000) -> None:
    """Count all blocks that are due, about this many rows in a unit."""
    while store.write(partial(blocks.roll_up, at_once)).result():
        pass


def over(kind: int, subject: int, first: int, end: int) -> PlayStats:
    """Return the counts of the days from the first on, before the end."""
    reader = Reader() if end == ALL_TIME else Reader(Window("", first, end), all_time=False)
    return reader.read(kind, [subject])[subject][0]


def all_time(kind: int, subject: int) -> PlayStats:
    return over(kind, subject, 0, ALL_TIME)


def in_windows(subject: Subject, *windows: Window) -> list[PlayStats]:
    """Return the counts of a subject in each window, and last those of all time."""
    return Reader(*windows).read(subject.kind, [subject.id])[subject.id]
