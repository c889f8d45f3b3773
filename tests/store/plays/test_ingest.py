"""Ingestion of plays: accepted, repeated and refused ones; figures do not depend on their order."""

from musicsvc.clock import DAY, MINUTE
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Listener, Play
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.subjects import TRACK
from tests.conftest import NOW
from tests.support import play_counts
from tests.support.reported_plays import account, figures, report


def test_each_refusal_has_its_reason_and_the_rest_is_accepted(store: Store, reporter: Identity) -> None:
    alone = store.write(lambda: account(reports_plays=False, email="bob@label.test")).result()
    heard = [
        ReportedPlay(9, NOW),
        ReportedPlay(1, NOW, "somebody"),
        ReportedPlay(1, NOW + 5 * MINUTE),
        ReportedPlay(1, NOW + 5 * MINUTE + 1),
    ]
    outcome = report(store, heard, alone)
    assert (outcome.accepted, outcome.repeated) == (1, 0)
    assert outcome.refused == [(0, ingest.UNKNOWN_TRACK), (1, ingest.FOR_OTHERS), (3, ingest.FUTURE)]
    late = [ReportedPlay(1, NOW - 400 * DAY, "somebody"), ReportedPlay(1, NOW - 400 * DAY - 1, "somebody")]
    assert report(store, late, reporter) == ingest.IngestOutcome(accepted=1, refused=[(1, ingest.TOO_OLD)])
    assert report(store, heard[1:2], reporter).accepted == 1


def test_no_opaque_name_can_be_an_accounts_own_key(store: Store, reporter: Identity) -> None:
    own = [
        ReportedPlay(1, NOW),
        ReportedPlay(1, NOW, f"account:{reporter.user_id}"),
        ReportedPlay(1, NOW, "opaque:x"),
        ReportedPlay(1, NOW, "x"),
    ]
    assert report(store, own, reporter).accepted == 4
    keys = store.read(lambda: {row.key for row in Listener.select()}).result()
    mine = f"account:{reporter.user_id}"
    assert keys == {mine, f"opaque:{mine}", "opaque:opaque:x", "opaque:x"}


def test_a_clients_id_makes_a_play_and_its_repeat_once_for_each_account(store: Store, reporter: Identity) -> None:
    other = store.write(lambda: account(reports_plays=True, email="bob@label.test")).result()
    first = ReportedPlay(1, NOW, "a", client_id="x")
    assert report(store, [first, first, ReportedPlay(1, NOW, "a", client_id="y")], reporter).accepted == 2
    elsewhere = ReportedPlay(2, NOW - DAY, "b", client_id="x")
    assert (report(store, [elsewhere], reporter).repeated, report(store, [elsewhere], other).accepted) == (1, 1)


def test_repeats_among_hundreds_of_new_plays_are_left_out(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW - at * MINUTE, "a") for at in range(700)]
    assert report(store, heard[300:310], reporter) == ingest.IngestOutcome(accepted=10)
    assert report(store, [*heard, heard[600], heard[5]], reporter) == ingest.IngestOutcome(accepted=690, repeated=12)
    assert figures(store)[TRACK, 1, 0, play_counts.ALL_TIME] == (700, [1])


def test_a_play_keeps_the_time_of_its_first_report(store: Store, reporter: Identity) -> None:
    heard = [ReportedPlay(1, NOW - DAY, "a"), ReportedPlay(2, NOW)]
    for now in (NOW, NOW + MINUTE):
        report(store, heard, reporter, now)
    stored = store.read(lambda: {row.track: (row.reporter, row.reported_at) for row in Play.select()}).result()
    assert stored == {1: (reporter.user_id, NOW), 2: (reporter.user_id, NOW)}
