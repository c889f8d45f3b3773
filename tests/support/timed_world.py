"""A catalog whose tracks have lengths, with plays that have durations, beside the figures that they must give."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

from musicsvc.clock import DAY
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.engine.store import Store
from musicsvc.store.insights.listening import listening, milestones, releases
from musicsvc.store.models import Album, Track
from musicsvc.store.plays import reattribution
from musicsvc.store.plays.periods import SLOT, Window, to_date
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.support import listening_oracle as oracle
from tests.support.listening_world import Catalog, catalog, record, withdraw
from tests.support.oracle import PlayOf

LENGTHS = (200_000, 59_999, 0, 20_001, 7)  # milliseconds, of the tracks of listening_world


@dataclass
class TimedWorld:
    """A catalog whose tracks have lengths, and everything played."""

    store: Store
    made: Catalog
    lengths: dict[int, int]
    plays: dict[tuple[int, int, str], PlayOf] = field(default_factory=dict)
    imported: dict[tuple[int, int, str], int] = field(default_factory=dict)  # the import that brought a play, or 0

    @classmethod
    def create(cls, store: Store, now: int) -> TimedWorld:
        made = store.write(partial(catalog, now)).result()
        world = cls(store, made, dict.fromkeys(made.tracks, 1))
        world.measure(dict(zip(made.tracks, LENGTHS, strict=True)))
        return world

    def on_copy(self, store: Store) -> TimedWorld:
        """Return this world for a copy of its database, so that it can change there."""
        return replace(
            self,
            store=store,
            made=copy.deepcopy(self.made),
            lengths=dict(self.lengths),
            plays=dict(self.plays),
            imported=dict(self.imported),
        )

    def play(self, batch: Iterable[PlayOf], number: int = 0) -> None:
        """Record plays of an import (0 is none); a later one of the same half minute is a repeat."""
        plays = sorted(batch, key=lambda play: (play.at // SLOT, play.track, play.listener, play.at))

        self.store.write(partial(record, plays, number)).result()
        for play in plays:
            key = play.at // SLOT, play.track, play.listener
            if self.plays.setdefault(key, play) is play:
                self.imported[key] = number

    def undo(self, number: int) -> None:
        """Take the plays of an import back."""
        withdraw(self.store, number)
        for key in [key for key, by in self.imported.items() if by == number]:
            del self.plays[key], self.imported[key]

    def measure(self, lengths: dict[int, int]) -> None:
        """Change the lengths of tracks as an import does."""

        def unit() -> None:
            with reattribution.rebuilding(list(lengths)):
                for track, length in lengths.items():
                    Track.update(duration=length).where(Track.id == track).execute()

        self.store.write(unit).result()
        self.lengths |= lengths

    def move(self, track: int, album: int | None) -> None:
        """Move a track to another album as an import does."""

        def unit() -> None:
            with reattribution.rebuilding([track]):
                Track.update(album=album).where(Track.id == track).execute()

        self.store.write(unit).result()
        for tracks in self.made.past.on_album.values():
            if track in tracks:
                tracks.remove(track)
        if album is not None:
            self.made.past.on_album[album].append(track)

    def roll_up(self) -> None:
        while self.store.write(partial(blocks.roll_up, 1000)).result():
            pass

    def subjects(self) -> dict[Subject, list[PlayOf]]:
        """Return all tracks, albums and artists with their plays."""
        past = self.made.past
        tracks = {Subject(TRACK, each): [each] for each in self.made.tracks}
        tracks |= {Subject(ALBUM, each): past.on_album.get(each, []) for each in self.made.albums}
        tracks |= {Subject(ARTIST, each): past.by_artist[each] for each in self.made.artists}
        return {
            subject: [play for play in self.plays.values() if play.track in members]
            for subject, members in tracks.items()
        }

    def release(self, album: int, released: int) -> None:
        """Set the release date of an album to a day since 1970."""
        text = to_date(released).isoformat()
        self.store.write(Album.update(release_date=text).where(Album.id == album).execute).result()

    def check_release(self, album: int, days: int, now: int) -> None:
        """Compare the days since the release of an album with the oracle."""
        (found,) = self.store.read(partial(releases.build, [album], days, now)).result()
        plays = self.subjects()[Subject(ALBUM, album)]
        assert found.release_date is not None
        expected = oracle.release(plays, date.fromisoformat(found.release_date), days, to_date(now // DAY))
        assert [point._asdict() for point in found.points] == expected

    def check(self, *windows: Window) -> None:
        """Compare the figures of all subjects with the oracle."""
        for subject, plays in self.subjects().items():
            found = shapes.milestones(self.store.read(partial(milestones.build, subject)).result())
            assert found == oracle.milestones(plays), (found, oracle.milestones(plays), subject)
            for window in windows:
                self.check_window(subject, plays, window)

    def check_window(self, subject: Subject, plays: list[PlayOf], window: Window) -> None:
        """Compare listening and hours in a window with the oracle; `plays` are those of the subject."""
        days = to_date(window.first), to_date(window.end - 1)
        heard, of_week = self.store.read(partial(listening.build, subject, window)).result()
        assert of_week == self.store.read(partial(listening.hours, subject, window)).result()
        assert of_week.plays == oracle.hours(plays, *days)
        found = shapes.listening(heard)
        assert found.pop("period") == {"name": "", "start": days[0].isoformat(), "end": days[1].isoformat()}
        assert found == oracle.listening(plays, self.lengths, *days)
