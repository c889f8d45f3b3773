"""The numbers of own plays by day equal the single plays, whatever is reported, withdrawn, deleted or moved."""

import random
from functools import partial

from musicsvc.clock import DAY
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.plays import retention
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import SLOT, Window
from musicsvc.store.plays.reported import account_plays
from musicsvc.store.plays.reported.account_plays import Reports
from musicsvc.store.plays.rollups.reader import Reader
from musicsvc.store.plays.subjects import ALBUM, ARTIST, Subject
from tests.conftest import NOW
from tests.support.reported_plays import SUBJECTS, TODAY, account, report
from tests.support.undoing import quiet, require_sound


def own(store: Store, subject: Subject, first: int, last: int) -> int:
    def read() -> int:
        return Reader(Window("", first, last + 1), all_time=False).own_plays(*subject)

    return store.read(read).result()


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
            assert own(store, Subject(kind, subject), TODAY - days, TODAY) == len(expected)
    require_sound(store)

    reports = Reports(other.user_id)
    summary = store.read(partial(account_plays.summarize, reports)).result()
    account_plays.withdraw(store, reports, summary, now=NOW, actor="cli", on_progress=quiet)
    left = [play for play, by in heard if by is reporter and play.listener is None]
    assert own(store, Subject(ARTIST, 2), TODAY - 20, TODAY) == sum(play.track_id > 1 for play in left)
    require_sound(store)

    retention.prune(store, 2, now=NOW, on_progress=quiet)
    assert own(store, Subject(ALBUM, 1), TODAY - 20, TODAY) == sum(play.track_id < 3 for play in left)
    require_sound(store)
