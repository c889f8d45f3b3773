"""Verification of play counts: equal to their plays after any ingestion, repaired where they are not."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from peewee import SQL

from musicsvc.clock import DAY
from musicsvc.store.engagement import likes
from musicsvc.store.engine.sql import current, fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.models import EngagementDay, Listener, Play, PlayCount, Track, TrackPlays
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest, retention, verify
from musicsvc.store.plays.ingest import WITHOUT_ID, ReportedPlay
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import counts, listeners
from musicsvc.store.plays.rollups.counts import BLOCK8, BLOCK32
from musicsvc.store.plays.rollups.counts import DAY as DAY_LEVEL
from tests.conftest import NOW
from tests.support import databases
from tests.support.play_counts import roll_up
from tests.support.reported_plays import account, figures, world

TODAY = NOW // DAY
DAYS = 40


def nothing(_done: float, _total: float) -> None:
    """Ignore progress."""


def run(store: Store, *, check: bool = False) -> verify.VerifyReport:
    return verify.run(store, check=check, on_progress=nothing)


@databases.prefilling
def prefilled(store: Store) -> None:
    """Create plays of forty days, most of them of track 1, rolled up, then late plays."""
    chance = random.Random(7)

    def some(count: int) -> None:
        people = list(listeners.ensure(f"opaque:{n}" for n in range(90)).values())
        rows = []
        for _ in range(count):
            at = NOW - int(chance.random() * DAYS * DAY)
            track = chance.choice([1, 1, 1, 1, 2, 3])
            rows.append(PlayRow(at // SLOT, track, chance.choice(people), WITHOUT_ID, at, chance.randrange(9), 0))
        ingest.record(rows)

    store.write(world).result()
    fan = store.write(partial(account, reports_plays=False, email="fan@label.test")).result()
    for track, back in ((1, 3), (2, 3), (2, 30)):
        kind = likes.LIKE if back == 3 else likes.REPOST
        store.write(partial(likes.add, kind, track, now=NOW - back * DAY, actor=fan)).result()
    for count in (1500, 30):
        store.write(partial(some, count)).result()
        roll_up(store, 2)


@pytest.fixture
def played(prefilled: databases.Filled[None], store: Store) -> Store:  # noqa: ARG001 - `store` is on a copy of it
    return store


def test_counts_of_many_batches_equal_a_recount(played: Store) -> None:
    report = run(played, check=True)
    assert (report.differing, report.differences, report.days) == (0, [], DAYS + 1)
    count = played.read(lambda: Play.select().count()).result()
    assert report.plays == count > 1400
    assert report.rows == played.read(lambda: PlayCount.select().count()).result()
    assert played.read(lambda: {key >> 61 for (key,) in fetch("SELECT key FROM play_count")}).result() == {0, 1, 2}


def engagement() -> set[tuple[int, ...]]:
    """Return all rows of likes and reposts by day."""
    return {tuple(row) for row in fetch("SELECT * FROM engagement_day")}


def of_level(level: int, kind: int | None = None) -> Any:
    """Return the condition for the rows of a level."""
    level_is = SQL(f"key >> {counts.LEVEL_SHIFT}") == level
    return level_is if kind is None else level_is & (SQL(counts.KIND) == kind)


def change(level: int, kind: int | None, **values: Any) -> Callable[[], Any]:
    return lambda: PlayCount.update(**values).where(of_level(level, kind)).execute()


def too_much(key: int) -> Callable[[], Any]:
    return lambda: PlayCount.create(key=key, plays=1, own=0, listeners=b"\1\0\0\0", histogram=b"")


MORE: dict[str, Any] = {"plays": PlayCount.plays + 1}
# What damages rows, by the name of the first that is wrong.
DAMAGES: dict[str, Callable[[], Any]] = {
    "album 1, 2026-01-20": change(DAY_LEVEL, 2, **MORE),
    "track 1, 2026-01-20: own plays": change(DAY_LEVEL, 1, own=1),
    "artist 1, 2026-01-20": change(DAY_LEVEL, 3, listeners=listeners.pack([1, 2])),
    "track 1, 2026-02-26": lambda: PlayCount.delete().where(SQL(counts.OF_DAY) == TODAY - 3).execute(),
    "track 9, 2026-02-26": too_much(counts.key(DAY_LEVEL, TODAY - 3, 1, 9)),
    "album 1, 2026-01-20: hours and completion": change(DAY_LEVEL, 2, histogram=b""),
    "track 1, the 32 days from 2025-12-26: hours and completion": change(BLOCK32, None, histogram=bytes(2)),
    "track 1, the 8 days from 2026-01-19: hours and completion": change(BLOCK8, None, histogram=b""),
    "album 1, the 32 days from 2025-12-26": change(BLOCK32, 2, **MORE),
    "artist 1, the 32 days from 2025-12-26: own plays": change(BLOCK32, 3, own=1),
    "track 1, the 32 days from 2025-12-26": lambda: PlayCount.delete().where(of_level(BLOCK32, 1)).execute(),
    "track 2, the 32 days from 2026-02-28": too_much(counts.key(BLOCK32, TODAY, 1, 2)),
    "track 1, the 8 days from 2026-01-19": change(BLOCK8, None, plays=0),
    "track 1, all time": lambda: TrackPlays.update(plays=7).where(TrackPlays.track == 1).execute(),
    "track 2, all time": lambda: TrackPlays.delete().where(TrackPlays.track == 2).execute(),
    "track 9, all time": lambda: TrackPlays.create(track=9, plays=1),
    "album 1, 2026-01-30: likes and reposts": lambda: (
        EngagementDay.update(likes=EngagementDay.likes + 1).where(EngagementDay.kind == 2).execute()
    ),
    "artist 1, 2026-01-30: likes and reposts": lambda: (
        EngagementDay.update(reposts=0).where(EngagementDay.kind == 3).execute()
    ),
    "track 2, 2026-01-30: likes and reposts": lambda: (
        EngagementDay.delete().where(EngagementDay.subject == 2).execute()
    ),
    "track 3, 2026-03-01: likes and reposts": lambda: EngagementDay.create(
        kind=1, subject=3, day=TODAY, likes=2, reposts=0
    ),
    "track 1, 2026-01-20": lambda: [table.delete().execute() for table in (PlayCount, TrackPlays, EngagementDay)],
}


def test_each_wrong_row_is_named_and_repaired(played: Store) -> None:
    before, given = figures(played), played.read(engagement).result()
    for row, damage in DAMAGES.items():
        played.write(damage).result()
        found = run(played)
        assert found.differing >= len(found.differences) > 0
        assert found.differences[0].row == row
        assert run(played, check=True).differing == 0
        assert figures(played) == before, row
        totals = played.read(lambda: {row.track: row.plays for row in TrackPlays.select()}).result()
        assert totals == {track: before[1, track, 0, 1 << 40][0] for track in (1, 2, 3)}
        assert played.read(engagement).result() == given, row


def test_a_difference_has_the_stored_and_the_counted_numbers(played: Store) -> None:
    def damage() -> tuple[int, int]:
        of_today = PlayCount.key == counts.key(DAY_LEVEL, TODAY, 1, 1)
        row = PlayCount.get(of_today)
        was = row.plays, listeners.count(row.listeners)
        PlayCount.update(plays=1, listeners=listeners.pack([1])).where(of_today).execute()
        return was

    was = played.write(damage).result()
    _, first = (run(played, check=True).differences[0] for _ in range(2))  # a check repairs nothing
    assert first == verify.Difference("track 1, 2026-03-01", (1, 1), was)


def test_wrong_likes_are_named_with_both_numbers(played: Store) -> None:
    played.write(lambda: EngagementDay.update(reposts=7).where(EngagementDay.kind == 1).execute()).result()
    found = run(played, check=True)
    assert {type(number) for each in found.differences for number in (*each.stored, *each.counted)} == {int}
    assert set(found.differences) == {
        verify.Difference("track 1, 2026-02-26: likes and reposts", (1, 7), (1, 0)),
        verify.Difference("track 2, 2026-01-30: likes and reposts", (0, 7), (0, 1)),
        verify.Difference("track 2, 2026-02-26: likes and reposts", (1, 7), (1, 0)),
    }


def test_without_plays_there_is_nothing_to_count(store: Store) -> None:
    assert run(store) == verify.VerifyReport()


def test_pruning_keeps_all_figures(played: Store) -> None:
    before = figures(played)
    count = played.read(lambda: Play.select().where(Play.slot < (TODAY - 30) * 2880).count()).result()
    assert retention.prune(played, 30, now=NOW, on_progress=nothing) == (count, TODAY - 30)
    assert retention.prune(played, 40, now=NOW, on_progress=nothing) == (0, TODAY - 40)
    assert figures(played) == before
    report = run(played)
    assert (report.differing, report.kept_from, report.days) == (0, TODAY - 30, 31)
    assert figures(played) == before


def test_a_reported_play_of_a_deleted_day_is_refused_and_changes_no_figure(played: Store) -> None:
    reporter = played.write(partial(account, reports_plays=True)).result()
    kept = (TODAY - 30) * DAY
    oldest = played.read(lambda: Play.select().order_by(Play.played_at).first()).result()
    assert oldest.played_at < kept - DAY
    retention.prune(played, 30, now=NOW, on_progress=nothing)
    before = figures(played)
    # A repeat of a deleted play, new plays up to the last instant before those kept, and the first instant after it.
    deleted = [oldest.played_at, kept - DAY, kept - 1]
    again = played.read(lambda: Listener.get_by_id(oldest.listener).key.removeprefix("opaque:")).result()
    heard = [ReportedPlay(oldest.track, at, f"late {at}" if number else again) for number, at in enumerate(deleted)]
    heard += [ReportedPlay(oldest.track, at, f"late {at}", client_id=str(at)) for at in (kept, NOW)]

    def report(heard: list[ReportedPlay]) -> ingest.IngestOutcome:
        return played.write(partial(ingest.report, heard, now=NOW, actor=reporter)).result()

    assert report(heard[:3]) == ingest.IngestOutcome(refused=[(at, ingest.PRUNED) for at in range(3)])
    assert figures(played) == before
    assert report(heard) == ingest.IngestOutcome(accepted=2, refused=[(at, ingest.PRUNED) for at in range(3)])
    ever = (1, oldest.track, 0, 1 << 40)
    assert figures(played)[ever][0] == before[ever][0] + 2
    assert played.read(lambda: Play.select().where(Play.played_at < kept).count()).result() == 0
    assert run(played, check=True).differing == 0


@pytest.mark.only_on("sqlite")
def test_days_without_plays_cost_a_recount_nothing(store: Store) -> None:
    def old() -> None:
        Track.create(name="Track", duration=1, created_at=1)
        current().execute_sql("INSERT INTO listener (id, key) VALUES (1, 'opaque:x')")
        ingest.record([PlayRow(day * 2880, 1, 1, WITHOUT_ID, day * DAY, None, 0) for day in (0, 12_000, TODAY)])

    store.write(old).result()
    report = run(store, check=True)
    assert (report.plays, report.days, report.differing) == (3, 3, 0)


def test_a_report_names_the_first_hundred_wrong_rows(played: Store) -> None:
    played.write(lambda: PlayCount.update(**MORE).execute()).result()
    found = run(played, check=True)
    assert len(found.differences) == 100 < found.differing
    assert [each.row for each in found.differences[:2]] == ["track 1, 2026-01-20", "track 2, 2026-01-20"]


def test_a_day_with_thousands_of_plays_is_compared(store: Store) -> None:
    def play() -> int:
        world()
        people = list(listeners.ensure(f"opaque:{n}" for n in range(700)).values())
        rows = [(TODAY * 2880 + n, people[n % 700], n * 100) for n in range(2_300)]
        return ingest.record(PlayRow(slot, 1, each, WITHOUT_ID, slot * SLOT, heard, 0) for slot, each, heard in rows)

    assert store.write(play).result() == 2_300
    assert run(store, check=True).differing == 0
    store.write(lambda: PlayCount.update(plays=7, listeners=b"").where(SQL(counts.KIND) == 1).execute()).result()
    assert run(store, check=True).differences[0] == verify.Difference("track 1, 2026-03-01", (7, 0), (2_300, 700))


@pytest.mark.only_on("sqlite")
def test_rows_that_stay_wrong_after_the_repair_are_a_failure(played: Store) -> None:
    spoil = "CREATE TRIGGER spoil AFTER INSERT ON track_plays BEGIN UPDATE track_plays SET plays = plays + 1; END"
    played.write(lambda: current().execute_sql(spoil)).result()
    played.write(DAMAGES["track 2, all time"]).result()
    with pytest.raises(RuntimeError, match="still differ from their plays after the repair"):
        run(played)
