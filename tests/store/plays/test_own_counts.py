"""The numbers of own plays by day equal the single plays, whatever is reported, withdrawn, deleted or migrated."""

import random
from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store import opening
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.engine.store import Store
from musicsvc.store.models import OwnPlayDay
from musicsvc.store.plays import retention, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.reported import account_plays, own_counts
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.plays.reported.own_counts import OwnPlays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, TRACK, Subject
from musicsvc.store.schema import schema
from tests.conftest import NOW
from tests.support.reported_plays import SUBJECTS, TODAY, account, report
from tests.support.undoing import quiet, require_sound


def own(store: Store, subject: Subject, first: int, last: int) -> OwnPlays:
    return store.read(partial(own_counts.of_period, subject, first, last)).result()


def test_own_plays_of_a_period_are_those_of_its_days_and_tracks(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=True, email="eve@label.test")).result()
    chance = random.Random(1)
    heard = [
        (ReportedPlay(1 + chance.randrange(3), NOW - at * 7 * SLOT * 60, chance.choice((None, None, "a"))), actor)
        for at in range(90)
        for actor in (reporter, other)
    ]
    for actor in (reporter, other):
        mine = [play for play, by in heard if by is actor]
        assert report(store, mine, actor).accepted > 80
        report(store, mine, actor)
    stored = [play for play, _ in heard if play.listener is None]
    for kind, subject, tracks in SUBJECTS:
        for days in (0, 1, 4, 13):
            expected = [play for play in stored if play.track_id in tracks and play.played_at // DAY >= TODAY - days]
            assert own(store, Subject(kind, subject), TODAY - days, TODAY) == (len(expected), 0)
    require_sound(store)

    before = store.read(OwnPlayDay.select().count).result()
    reports = Reports(other.user_id)
    summary = store.read(partial(account_plays.summarize, reports)).result()
    account_plays.withdraw(store, reports, summary, now=NOW, actor="cli", on_progress=quiet)
    left = [play for play, by in heard if by is reporter and play.listener is None]
    assert own(store, Subject(ARTIST, 2), TODAY - 20, TODAY).plays == sum(play.track_id > 1 for play in left)
    assert store.read(OwnPlayDay.select().count).result() < before
    require_sound(store)

    retention.prune(store, 2, now=NOW, on_progress=quiet)
    assert own(store, Subject(ALBUM, 1), TODAY - 20, TODAY).plays == sum(play.track_id < 3 for play in left)
    require_sound(store)


def test_wrong_numbers_of_own_plays_are_found_and_repaired(store: Store, reporter: Identity) -> None:
    report(store, [ReportedPlay(1, NOW), ReportedPlay(2, NOW - DAY)], reporter)
    store.write(lambda: run("UPDATE own_play_day SET plays = 9 WHERE track_id = 1")).result()
    store.write(lambda: run("DELETE FROM own_play_day WHERE track_id = 2")).result()
    store.write(lambda: run("INSERT INTO own_play_day VALUES (3, ?, 4)", TODAY)).result()
    found = verify.run(store, check=False, on_progress=quiet)
    assert [tuple(each) for each in found.differences] == [
        ("track 1, 2026-03-01: own plays", (9, 0), (1, 0)),
        ("track 2, 2026-02-28: own plays", (0, 0), (1, 0)),
        ("track 3, 2026-03-01: own plays", (4, 0), (0, 0)),
    ]
    require_sound(store)
    assert own(store, Subject(TRACK, 1), TODAY, TODAY).plays == 1


OLD = """
INSERT INTO listener (id, key) VALUES (1, 'account:7'), (2, 'opaque:account:7');
INSERT INTO play (slot, track_id, listener_id, client_key, played_at, reporter) VALUES
    (2880, 1, 1, {none}, 1, 7), (2881, 1, 1, {none}, 1, 7), (2881, 1, 2, {none}, 1, 7), (8640, 2, 1, {none}, 1, 7);
UPDATE play_mark SET kept_from = 1
"""


def test_the_own_plays_of_an_old_database_are_counted(
    new_database: Callable[..., str], request: pytest.FixtureRequest
) -> None:
    from tests.support import upgrades  # noqa: PLC0415 - the fixture `old` belongs to other tests

    none = "''::bytea" if request.config.getoption("--store") == "postgres" else "x''"
    url = new_database(migrated=False)
    upgrades.migrate_to(url, "0028_session_index", *OLD.format(none=none).split(";"))
    schema.upgrade(url)
    with opening.connect(url) as store:
        rows = store.read(lambda: fetch("SELECT track_id, day, plays FROM own_play_day ORDER BY 1")).result()
        assert [tuple(row) for row in rows] == [(1, 1, 2), (2, 3, 1)]
        assert own(store, Subject(TRACK, 1), 0, 9) == OwnPlays(2, known_from=1)
        assert [each for each in store.read(schema.problems).result() if "names of tracks" not in each] == []
