"""Any order of what happens after listens came in gives the figures of a recount in plain Python, which follows it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND
from musicsvc.store import opening
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import artists, merged, tracks
from musicsvc.store.editing import deletions, edits
from musicsvc.store.engine.pagination import Page
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import undo
from musicsvc.store.listens import pending
from musicsvc.store.listens.matching import Listen
from musicsvc.store.models import Artist, DeletedTrack, ImportItem, Merged, MergedCredit, OwnPlayDay, Track, TrackArtist
from musicsvc.store.plays import retention
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.plays.subjects import ARTIST, TRACK
from tests.conftest import NOW
from tests.store.listens.test_resolving import AT, hear, make, settle, waiting
from tests.support import play_counts, reported_plays
from tests.support.catalog_import import import_rows
from tests.support.examples import examples
from tests.support.merges import merge
from tests.support.undoing import quiet, require_sound

ARTISTS, TITLES = ("Ann", "Ben"), ("One", "Two")
NAMES = [(artist, title) for artist in ARTISTS for title in TITLES]
CODE = "USRC17607839"
FIRST_DAY = NOW // DAY - 3  # on which anything is heard
Figures = dict[tuple[int, int, int], tuple[int, set[int]]]  # plays and accounts by kind, id and day


@dataclass
class Heard:
    """A listen that was accepted. `track`: that counts it, None while it waits. `gone`: it counts for nothing again."""

    person: int
    listen: Listen
    track: int | None
    waited: bool
    gone: bool = False

    @property
    def day(self) -> int:
        return self.listen.played_at // DAY

    @property
    def names(self) -> tuple[str, str]:
        return self.listen.artist.lower(), self.listen.title.lower()


class Catalog(NamedTuple):
    """The tracks as they are now: their edits, artists, names as (artist, title), also former ones, and codes."""

    edited: dict[int, bool]
    credits: dict[int, set[int]]  # also of deleted tracks
    names: dict[tuple[str, str], set[int]]
    codes: dict[str, set[int]]

    def find(self, listen: Listen) -> int | None:
        coded = self.codes.get(listen.isrc or "")
        found = coded or self.names.get((listen.artist.lower(), listen.title.lower()))
        return min(found) if found else None


def read_catalog() -> Catalog:
    called = defaultdict[int, set[str]](set)
    rows: Any = Artist.select(Artist.id, Artist.name).tuples()
    for artist, name in [*rows]:
        called[artist].add(name.lower())
    artists_now = {*called}
    former = Merged.select(Merged.into, Merged.name).where(Merged.kind == merged.ARTIST)
    for artist, name in [*former.tuples()]:
        called[artist].add(name.lower())
    found = Catalog({}, defaultdict(set), defaultdict(set), defaultdict(set))
    for track, name, code, at, artist in [
        *Track.select(Track.id, Track.name, Track.isrc, Track.edited_at, TrackArtist.artist).join(TrackArtist).tuples()
    ]:
        found.edited[track] = at is not None
        found.credits[track].add(artist)
        _add(found, track, name, code, called[artist])
    rows = Merged.select(Merged.into, Merged.name, Merged.code, MergedCredit.artist).join(MergedCredit)
    for track, name, code, artist in [*rows.where(Merged.kind == merged.TRACK).tuples()]:
        _add(found, track, name, code, called[artist])
    kept = DeletedTrack.select(DeletedTrack.track, DeletedTrack.subject).where(DeletedTrack.kind == ARTIST)
    for track, artist in [*kept.tuples()]:
        if artist in artists_now:  # not one that an undo took back since
            found.credits[track].add(artist)
    return found


def _add(found: Catalog, track: int, name: str, code: str | None, called: set[str]) -> None:
    for artist in called:
        found.names[artist, name.lower()].add(track)
    if code:
        found.codes[code].add(track)


@dataclass
class World:
    """A store, two people who listen, and what they heard, which is followed in plain Python."""

    store: Store
    file: Path
    people: list[Identity]
    heard: list[Heard] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    kept_from: int = 0
    steps: int = 0

    def catalog(self) -> Catalog:
        return self.store.read(read_catalog).result()

    # What happens: `a` and `b` choose among what there is.

    def hear(self, a: int, b: int) -> None:
        artist, title = NAMES[a % len(NAMES)]
        at = AT - self.steps * 60 * SECOND - b % 3 * DAY
        listen = Listen(at, artist.upper() if b & 4 else artist, title, isrc=CODE if b & 8 else None)
        self._receive(a & 4 > 0, listen, again=a & 8 > 0)

    def _receive(self, other: bool, listen: Listen, *, again: bool = False) -> None:
        person = self.people[other]
        found = self.catalog().find(listen)
        hear(self.store, person, *[listen] * (1 + again))
        if listen.played_at // DAY >= self.kept_from:
            self.heard.append(Heard(int(other), listen, found, waited=found is None))

    def repeat(self, a: int, b: int) -> None:
        """Report a listen again or, in the same half minute, another title; nothing of it counts."""
        if self.heard:
            former = self.heard[a % len(self.heard)]
            title = "Three" if b % 3 == 0 else former.listen.title
            hear(self.store, self.people[former.person], former.listen._replace(title=title))

    def create(self, a: int, b: int) -> None:
        artist, title = NAMES[a % len(NAMES)]
        code = {"isrc": CODE} if b & 4 and CODE not in self.catalog().codes else {}
        self.store.write(partial(make, title, artist, **code)).result()

    def bring(self, a: int, b: int) -> None:
        """Import one or two tracks."""
        rows = [{"track": title, "artist": artist} for artist, title in {NAMES[a % 4], NAMES[b % 4]}]
        run = import_rows(self.store, self.file, sorted(rows, key=str)).run
        self.runs += [] if run is None else [run]

    def undo(self, a: int, _b: int) -> None:
        """Undo an import: its tracks go, and what had waited for them waits again."""
        if not self.runs:
            return
        run = self.runs.pop(a % len(self.runs))
        items = ImportItem.select(ImportItem.item).where(ImportItem.run == run, ImportItem.kind == "track")
        made = {row[0] for row in self.store.read(lambda: [*items.tuples()]).result()}
        before = self.catalog()
        undo.undo(self.store, run, now=NOW, on_progress=quiet)
        gone = made & before.edited.keys() - self.catalog().edited.keys()
        counted = [each for each in self.heard if each.track in made]
        in_use = {each.track for each in counted if not each.waited or each.day < self.kept_from}
        in_use |= {track for track, edited in before.edited.items() if edited}
        assert gone == (made & before.edited.keys()) - in_use
        for each in counted:
            if each.track in gone:
                each.track = None
        self.settle()  # they are shown once another track was looked for

    def rename_track(self, a: int, b: int) -> None:
        if track := self._track(a):
            change = {"name": TITLES[b % 2]}
            self.store.write(lambda: edits.edit_track(tracks.get(track), change, now=NOW)).result()

    def rename_artist(self, a: int, b: int) -> None:
        rows = self._artists()
        if rows:
            change = {"name": ARTISTS[b % 2]}
            unit = lambda: edits.edit_artist(artists.get(rows[a % len(rows)]), change, now=NOW)  # noqa: E731 - short
            self.store.write(unit).result()

    def credit(self, a: int, b: int) -> None:
        """Give a track to another artist."""
        rows = self._artists()
        if track := self._track(a):
            change = {"artists": [rows[b % len(rows)]]}
            self.store.write(lambda: edits.edit_track(tracks.get(track), change, now=NOW)).result()

    def merge_tracks(self, a: int, b: int) -> None:
        source, target = self._track(a), self._track(b)
        if source and target and source != target:
            merge(self.store, "track", source, target)
            for each in self.heard:
                each.track = target if each.track == source else each.track

    def merge_artists(self, a: int, b: int) -> None:
        rows = self._artists()
        if rows and rows[a % len(rows)] != rows[b % len(rows)]:
            merge(self.store, "artist", rows[a % len(rows)], rows[b % len(rows)])

    def delete(self, a: int, _b: int) -> None:
        if track := self._track(a):
            unit = lambda: deletions.delete(tracks.get(track), now=NOW, account=None, actor="cli")  # noqa: E731 - short
            self.store.write(unit).result()

    def name(self, a: int, b: int) -> None:
        track, chosen = self._track(b), self._entry(a)
        if chosen and track:
            person, names = chosen
            self._with_entry(chosen, lambda entry: pending.name(entry, track, actor=person, now=NOW))
            for each in self._waiting(person):
                if each.names == names:
                    self._count(each, track)

    def dismiss(self, a: int, b: int) -> None:
        """Dismiss an entry or, at times, all of them."""
        if chosen := self._entry(a):
            person, names = chosen
            is_all = b % 4 == 0
            self._with_entry(chosen, lambda entry: pending.dismiss(None if is_all else entry, actor=person))
            for each in self._waiting(person):
                each.gone = each.gone or is_all or each.names == names

    def prune(self, a: int, _b: int) -> None:
        keep = 2 - a % 2
        retention.prune(self.store, keep, now=NOW, on_progress=quiet)
        self.kept_from = max(self.kept_from, NOW // DAY - keep)

    def withdraw(self, a: int, _b: int) -> None:
        """Withdraw all plays of a person that are kept, which give back their places."""
        person = self.people[a % 2]
        reports = Reports(person.user_id)
        self.store.write(lambda: account_plays.withdraw_batch(reports, now=NOW, actor="cli")).result()
        taken = [each for each in self.heard if each.person == a % 2 and each.track and each.day >= self.kept_from]
        self.heard = [each for each in self.heard if each not in taken]

    def settle(self, _a: int = 0, _b: int = 0) -> None:
        settle(self.store)
        catalog = self.catalog()
        for each in self.heard:
            if each.track is None and not each.gone and (track := catalog.find(each.listen)):
                self._count(each, track)

    def _count(self, each: Heard, track: int) -> None:
        """Count a listen, unless plays of its day are not kept any more."""
        if each.day < self.kept_from:
            each.gone = True
        else:
            each.track = track

    def _track(self, number: int) -> int | None:
        found = sorted(self.catalog().edited)
        return found[number % len(found)] if found else None

    def _artists(self) -> list[int]:
        rows: Any = Artist.select(Artist.id).order_by(Artist.id).tuples()
        found: list[int] = self.store.read(lambda: [number for (number,) in rows]).result()
        return found

    def _waiting(self, person: Identity) -> list[Heard]:
        of = [each for each in self.heard if self.people[each.person] == person]
        return [each for each in of if each.track is None and not each.gone]

    def _entry(self, number: int) -> tuple[Identity, tuple[str, str]] | None:
        """Return a person and the names of one of its entries."""
        person = self.people[number % 2]
        found = sorted({each.names for each in self._waiting(person)})
        return (person, found[number // 2 % len(found)]) if found else None

    def _with_entry(self, chosen: tuple[Identity, tuple[str, str]], act: Callable[[int], None]) -> None:
        person, names = chosen

        def unit() -> None:
            page = pending.list_own(Page(1, 100), actor=person)
            (number,) = [row.id for row in page.rows if (row.artist.lower(), row.title.lower()) == names]
            act(pending.find_own(number, actor=person))

        self.store.write(unit).result()

    # The figures.

    def verify(self) -> None:
        """Compare the store with the recount."""
        catalog = self.catalog()
        expected: Figures = {}
        for each in self.heard:
            if each.track:
                subjects = [(TRACK, each.track)] if each.track in catalog.edited else []
                for kind, number in [*subjects, *((ARTIST, number) for number in catalog.credits[each.track])]:
                    plays, people = expected.get((kind, number, each.day), (0, set()))
                    expected[kind, number, each.day] = plays + 1, people | {each.person}
        assert self.store.read(partial(self._figures, catalog)).result() == expected
        for person in self.people:
            named = Counter[tuple[str, str]]()
            for (artist, title), number in waiting(self.store, person).items():
                named[artist.lower(), title.lower()] += number
            assert named == Counter(each.names for each in self._waiting(person))
        require_sound(self.store)
        rows = self.store.read(lambda: [*OwnPlayDay.select(OwnPlayDay.day, OwnPlayDay.plays).tuples()]).result()
        days = Counter(each.day for each in self.heard if each.day >= self.kept_from)
        held = Counter[int]()
        for day, plays in rows:
            held[day] += plays if day >= self.kept_from else 0
        assert +held == days

    def _figures(self, catalog: Catalog) -> Figures:
        keys = [listeners.account_key(person.user_id) for person in self.people]
        numbers = {number: keys.index(key) for key, number in listeners.find(keys).items()}
        subjects = [(TRACK, number) for number in catalog.edited]
        rows: Any = Artist.select(Artist.id).tuples()
        subjects += [(ARTIST, number) for (number,) in rows]
        found: Figures = {}
        for kind, number in subjects:
            for day in range(FIRST_DAY, NOW // DAY + 1):
                stats = play_counts.over(kind, number, day, day + 1)
                if stats.plays:
                    found[kind, number, day] = stats.plays, {numbers[each] for each in stats.listeners}
        return found


KINDS = (
    World.hear, World.repeat, World.create, World.bring, World.undo, World.rename_track, World.rename_artist,
    World.credit, World.merge_tracks, World.merge_artists, World.delete, World.name, World.dismiss, World.prune,
    World.withdraw,
)  # fmt: skip
CHOICE = some.integers(0, 15)
Step = tuple[Callable[[World, int, int], None], int, int, bool]  # and whether the server looks at what changed, then
STEPS = some.lists(some.tuples(some.sampled_from(KINDS), CHOICE, CHOICE, some.booleans()), min_size=8, max_size=25)


def live(url: str, file: Path, steps: Sequence[Step]) -> None:
    with opening.connect(url) as store:
        account = partial(reported_plays.account, reports_plays=False)
        people = [store.write(partial(account, email=f"{name}@label.test")).result() for name in ("ann", "ben")]
        world = World(store, file, people)
        beginning = [(World.hear, place, place, False) for place in range(6)]
        for world.steps, (act, a, b, settles) in enumerate([*beginning, *steps]):
            act(world, a, b)
            if settles:
                world.settle()
        world.settle()
        world.verify()


@pytest.mark.slow
def test_any_order_of_what_happens_gives_the_figures_of_a_recount(
    new_database: Callable[..., str], tmp_path: Path
) -> None:
    @settings(max_examples=examples(200), deadline=None, suppress_health_check=[*HealthCheck])
    @given(STEPS)
    def run(steps: list[Step]) -> None:
        live(new_database(), tmp_path / "rows.jsonl", steps)

    run()
