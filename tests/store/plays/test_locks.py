"""On PostgreSQL, whatever changes play counts waits for other changes of them."""

from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import made_rows, runs
from musicsvc.store.models import Track
from musicsvc.store.plays import counting, ingest, reattribution, retention, verify
from musicsvc.store.plays.rollups import blocks, withdrawal
from musicsvc.store.plays.verify import compare_totals
from musicsvc.store.seeding import plays as seeding
from tests.conftest import NOW
from tests.support.postgres_locks import require_wait


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
