"""Listening, hours and milestones equal a count of single plays, whatever happens to plays and tracks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY
from musicsvc.server.shapes import listening as shapes
from musicsvc.store.insights.listening import listening, milestones
from musicsvc.store.models import Track
from musicsvc.store.plays import ingest, reattribution, verify
from musicsvc.store.plays.periods import SLOT, Window, to_date
from musicsvc.store.plays.rollups import listeners, monthly
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from tests.conftest import NOW
from tests.support import listening_oracle as oracle
from tests.support.listening_oracle import TimedPlay
from tests.support.listening_world import TRACKS, Catalog, catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from musicsvc.store.engine.store import Store

TODAY = NOW // DAY
LENGTHS = (200_000, 59_999, 0, 20_001, 7)
WINDOWS = [Window("", TODAY - first, TODAY + 1 - last) for first, last in ((0, 0), (29, 0), (6, 1), (89, 31), (800, 0))]
DURATIONS = [None, 0, 7, 9_999, 10_000, 10_001, 29_999, 30_000, 99_999, 100_000, 199_999, 200_000, 10**7]


@dataclass
class World:
    """A catalog whose tracks have lengths, and everything played."""

    store: Store
    made: Catalog
    lengths: dict[int, int]
    plays: dict[tuple[int, int, str], TimedPlay] = field(default_factory=dict)

    @classmethod
    def create(cls, store: Store) -> World:
        made = store.write(partial(catalog, NOW)).result()
        world = cls(store, made, dict.fromkeys(made.tracks, 1))
        world.measure(dict(zip(made.tracks, LENGTHS, strict=True)))
        return world

    def play(self, batch: Iterable[TimedPlay]) -> None:
        """Record plays; a later one of the same half minute is a repeat."""
        plays = sorted(batch, key=lambda play: (play.at // SLOT, play.track, play.listener, play.at))

        def unit() -> None:
            ids = listeners.ensure({listeners.opaque_key(play.listener) for play in plays})
            ingest.record(
                ingest.PlayRow(
                    play.at // SLOT,
                    play.track,
                    ids[listeners.opaque_key(play.listener)],
                    ingest.WITHOUT_ID,
                    play.at,
                    play.duration_ms,
                    0,
                )
                for play in plays
            )

        self.store.write(unit).result()
        for play in plays:
            self.plays.setdefault((play.at // SLOT, play.track, play.listener), play)

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
        while self.store.write(partial(monthly.roll_up, 1000)).result():
            pass

    def subjects(self) -> dict[Subject, list[TimedPlay]]:
        """Return all tracks, albums and artists with their plays."""
        past = self.made.past
        tracks = {Subject(TRACK, each): [each] for each in self.made.tracks}
        tracks |= {Subject(ALBUM, each): past.on_album.get(each, []) for each in self.made.albums}
        tracks |= {Subject(ARTIST, each): past.by_artist[each] for each in self.made.artists}
        return {
            subject: [play for play in self.plays.values() if play.track in members]
            for subject, members in tracks.items()
        }

    def check(self, *windows: Window) -> None:
        """Compare the figures of all subjects with the oracle."""
        for subject, plays in self.subjects().items():
            found = shapes.milestones(self.store.read(partial(milestones.build, subject)).result())
            assert found == oracle.milestones(plays)
            for window in windows:
                self._check(subject, plays, window)

    def _check(self, subject: Subject, plays: list[TimedPlay], window: Window) -> None:
        days = to_date(window.first), to_date(window.end - 1)
        of_week = self.store.read(partial(listening.hours, subject, window)).result()
        assert of_week.plays == oracle.hours(plays, *days)
        found = shapes.listening(self.store.read(partial(listening.build, subject, window)).result())
        assert found.pop("period") == {"name": "", "start": days[0].isoformat(), "end": days[1].isoformat()}
        assert found == oracle.listening(plays, self.lengths, *days)


back = some.one_of(some.sampled_from([0, 1, 6, 7, 29, 30, 31, 63, 64, 65, 89, 90, 800]), some.integers(0, 100))
# A track heard by some listeners, each a minute and a bit after the one before.
party = some.tuples(
    some.integers(0, len(TRACKS) - 2),
    back,
    some.integers(0, DAY - 1),
    some.integers(1, 45),
    some.sampled_from(DURATIONS),
)
steps = some.one_of(
    some.lists(party, min_size=1, max_size=6),
    some.just("roll up"),
    some.tuples(some.just("move"), some.integers(0, 3), some.sampled_from([None, 0, 1])),
    some.tuples(some.just("measure"), some.integers(0, 3), some.sampled_from([0, 15_000, 60_000, 400_001])),
)
window = some.tuples(back, back).map(lambda ends: Window("", TODAY - max(ends), TODAY - min(ends) + 1))
LIGHT = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def parties(world: World, drawn: list[Any]) -> list[TimedPlay]:
    return [
        TimedPlay(world.made.tracks[track], min((TODAY - back) * DAY + at + n * 61 * 10**6, NOW), f"l{n}", duration)
        for track, back, at, count, duration in drawn
        for n in range(count)
    ]


@LIGHT
@given(drawn=some.lists(steps, min_size=1, max_size=8), windows=some.lists(window, max_size=2))
def test_every_figure_equals_a_count_of_single_plays(store: Store, drawn: list[Any], windows: list[Window]) -> None:
    world = World.create(store)
    for step in drawn:
        if step == "roll up":
            world.roll_up()
        elif isinstance(step, list):
            world.play(parties(world, step))
        elif step[0] == "move":
            world.move(world.made.tracks[step[1]], None if step[2] is None else world.made.albums[step[2]])
        else:
            world.measure({world.made.tracks[step[1]]: step[2]})
    world.check(*windows, WINDOWS[1])
    assert verify.run(store, check=True, on_progress=lambda *_: None).differing == 0
