"""Plays move with their track to another album or other artists."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import engagement_days, likes
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.undoing import made_rows, runs
from musicsvc.store.insights import engagement
from musicsvc.store.models import Album, Artist, Track
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import counting, ingest, periods, reattribution, retention, verify
from musicsvc.store.plays.rollups import blocks, counts, listeners, recount, withdrawal
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST
from musicsvc.store.plays.verify import compare_totals
from musicsvc.store.seeding import plays as seeding
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.import_files import import_file
from tests.support.play_counts import roll_up
from tests.support.postgres_locks import require_wait
from tests.support.query_count import statements
from tests.support.reported_plays import account, world

ROWS = [
    {"external_id": "a", "track": "First", "artist": "Ann", "album": "One"},
    {"external_id": "b", "track": "Second", "artist": "Ann;Bea", "album": "One"},
    {"external_id": "c", "track": "Third", "artist": "Bea", "album": "Two"},
]
DAYS_AGO = (0, 1, 33, 70)


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Callable[[list[dict[str, str]]], None]:
    def run(rows: list[dict[str, str]]) -> None:
        import_file(store, tmp_path / "rows.jsonl", Catalog(ImportOptions()), rows)

    return run


def listen() -> None:
    """Let listener n of three play track n and the one before it on each day."""
    people = list(listeners.ensure(["opaque:x", "opaque:y", "opaque:z"]).values())
    tracks = [row.id for row in Track.select().order_by(Track.external_id)]
    ingest.record(
        PlayRow((NOW - back * DAY) // periods.SLOT, track, person, b"", NOW - back * DAY, None, 0)
        for back in DAYS_AGO
        for at, person in enumerate(people)
        for track in tracks[max(0, at - 1) : at + 1]
    )


def like(store: Store) -> None:
    """Give track n n likes, each on another day."""
    tracks = store.read(lambda: [row.id for row in Track.select().order_by(Track.external_id)]).result()
    for fan in range(len(tracks)):
        actor = store.write(partial(account, reports_plays=False, email=f"fan{fan}@label.test")).result()
        for number, track in enumerate(tracks, 1):
            if fan < number:
                store.write(partial(likes.add, likes.LIKE, track, now=NOW - fan * DAY, actor=actor)).result()


def liked(store: Store) -> dict[str, int]:
    """Return by name the likes of albums and artists."""

    def read() -> dict[str, int]:
        named: list[tuple[int, Any]] = [(ALBUM, row) for row in Album.select()] + [(ARTIST, r) for r in Artist.select()]
        window = periods.window("7-days", NOW)
        return {row.name: engagement.by_day(kind, [row.id], window).likes.total() for kind, row in named}

    return store.read(read).result()


def figures(store: Store) -> dict[str, list[tuple[int, int]]]:
    """Return by name the plays and listeners of all time, of the last 60 days, and of each day."""

    def read() -> dict[str, list[tuple[int, int]]]:
        found: dict[str, list[tuple[int, int]]] = {}
        named: list[tuple[int, Any]] = [(ALBUM, row) for row in Album.select()] + [(ARTIST, r) for r in Artist.select()]
        today = NOW // DAY
        spans = [
            (0, play_counts.ALL_TIME),
            (today - 59, today + 1),
            *((today - back, today - back + 1) for back in DAYS_AGO),
        ]
        for kind, row in named:
            heard = [play_counts.over(kind, row.id, *span) for span in spans]
            found[row.name] = [(each.plays, len(each.listeners)) for each in heard]
        return found

    return store.read(read).result()


def every_day(**found: tuple[int, int]) -> dict[str, list[tuple[int, int]]]:
    """Return the figures if each day has these plays, by the same listeners."""
    return {
        name: [(count * 4, people), (count * 3, people), *[(count, people)] * 4]
        for name, (count, people) in found.items()
    }


STAYS = {"One": (4, 3), "Two": (1, 1), "Ann": (4, 3), "Bea": (3, 2)}
TWO = {"album": "Two", "album_external_id": "two"}
# What another import says of the second track, or of the third, and the figures afterwards.
MOVES: dict[str, tuple[int, dict[str, str], dict[str, tuple[int, int]]]] = {
    "the album alone": (1, TWO, STAYS | {"One": (2, 2), "Two": (3, 2)}),
    "a new album alone": (1, {"album": "New", "album_external_id": "new"}, STAYS | {"One": (2, 2), "New": (2, 2)}),
    "the artists alone": (1, {"artist": "Bea"}, STAYS | {"Ann": (2, 2)}),
    "their order alone": (1, {"artist": "Bea;Ann"}, STAYS),
    "the title alone": (1, {"track": "Again"}, STAYS),
    "album and artists": (
        1,
        TWO | {"artist": "Bea;Cleo"},
        {"One": (2, 2), "Two": (3, 2), "Ann": (2, 2), "Bea": (3, 2), "Cleo": (2, 2)},
    ),
    "the last track of its album": (
        2,
        {"album": "One", "album_external_id": "one", "artist": "Ann;Bea"},
        {"One": (5, 3), "Two": (0, 0), "Ann": (5, 3), "Bea": (3, 2)},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("slices", [0, 2, 4, 99])
def test_a_repeated_import_moves_what_it_changes_and_nothing_else(
    store: Store, imported: Callable[..., None], move: str, slices: int
) -> None:
    rows = [row | {"album_external_id": row["album"].lower()} for row in ROWS]
    imported(rows)
    store.write(listen).result()
    for _ in range(slices):
        store.write(lambda: blocks.roll_up(1)).result()
    # Listeners of track a are x and y, of b y and z, of c z.
    assert figures(store) == every_day(**STAYS)
    number, change, expected = MOVES[move]
    rows[number] |= change
    for again in (rows, rows[::-1]):
        imported(again)
        assert figures(store) == every_day(**expected)
        assert verify.run(store, check=True, on_progress=lambda _done, _total: None).differences == []


@pytest.mark.parametrize("played", [True, False])
def test_likes_follow_their_track(store: Store, imported: Callable[..., None], *, played: bool) -> None:
    imported(ROWS)
    like(store)
    if played:
        store.write(listen).result()
    assert liked(store) == {"One": 3, "Two": 3, "Ann": 3, "Bea": 5}
    imported([ROWS[1] | {"album": "Two", "artist": "Bea;Cleo"}])
    assert liked(store) == {"One": 1, "Two": 5, "Ann": 1, "Bea": 5, "Cleo": 2}
    assert store.read(engagement_days.wrong).result() == []


def test_a_length_that_is_imported_later_counts_for_past_plays(
    store: Store, imported: Callable[[list[dict[str, str]]], None]
) -> None:
    imported(ROWS)

    def listen_for_a_while() -> None:
        (listener,) = listeners.ensure(["opaque:x"]).values()
        tracks = [row.id for row in Track.select().order_by(Track.external_id)]
        ingest.record(
            PlayRow((NOW - back * DAY) // periods.SLOT, track, listener, b"", NOW - back * DAY, heard, 0)
            for back in DAYS_AGO
            for track, heard in zip(tracks, (10_000, 90_000, None), strict=True)
        )

    def completions() -> dict[str, list[int]]:
        window = periods.Window("", NOW // DAY - 80, NOW // DAY + 1)
        read = {
            row.name: Reader(window, all_time=False).histogram(kind, [row.id])
            for kind, table in ((ALBUM, Album), (ARTIST, Artist))
            for row in table.select()
        }
        return {
            name: [percent for percent, plays in enumerate(found.completions) if plays] for name, found in read.items()
        }

    store.write(listen_for_a_while).result()
    roll_up(store)
    assert set(map(tuple, store.read(completions).result().values())) == {()}

    imported([row | {"duration_ms": str(100_000 * at)} for at, row in enumerate(ROWS, 1)])

    assert store.read(completions).result() == {"One": [10, 45], "Two": [], "Ann": [10, 45], "Bea": [45]}
    assert verify.run(store, check=True, on_progress=lambda *_: None).differences == []


# On PostgreSQL, whatever changes play counts waits for other changes of them.


def rebuild() -> None:
    with reattribution.rebuilding([1]):
        pass


def undo_a_track() -> None:
    runs.made(1, Track, [3])
    assert made_rows.take_back(Track, 1, "cli", 1, 9)


CHANGES: list[Callable[[], object]] = [
    partial(seeding.load, now=NOW),
    partial(blocks.roll_up, 9),
    partial(withdrawal.withdraw, withdrawal.Selection("import_id = ?", (1,)), [9]),
    partial(retention._begin, 9, 1, NOW),
    partial(verify._repair, compare_totals),
    rebuild,
    undo_a_track,
]


@pytest.mark.only_on("postgres")
def test_a_change_of_play_counts_waits_for_others(store: Store, reporter: Identity) -> None:
    changes = [*CHANGES, lambda: ingest.report([], now=NOW, actor=reporter)]
    for change in changes:
        require_wait(store, counting.lock, change)


@pytest.mark.only_on("postgres")
@pytest.mark.usefixtures("reporter")
def test_a_move_waits_for_likes_and_reposts(store: Store) -> None:
    require_wait(store, engagement_days.lock, rebuild)


def test_the_tracks_of_an_artist_are_found_once_for_all_days(store: Store) -> None:
    store.write(world).result()

    def renew() -> int:
        with statements() as found:
            recount.renew({counts.key(counts.DAY, day, kind, 1) for day in range(40) for kind in (ALBUM, ARTIST)})
        return sum("members.track_id" in each.sql for each in found)

    assert store.write(renew).result() == 2
