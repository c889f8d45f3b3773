"""`musicsvc plays list` and `musicsvc plays withdraw`."""

import pytest

from musicsvc.clock import DAY, MINUTE, Clock, isoformat
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import day_of, to_date
from musicsvc.store.security import security_events
from tests.cli.conftest import Json, Run
from tests.cli.test_terminal import Terminal

EVE = "eve@label.test"


@pytest.fixture
def now(run: Run, store: Store) -> int:
    """Create Eve, who reported three own plays of Rag three hours ago, and four plays of two tracks just now."""
    run("user", "create", EVE)
    now = Clock().now()

    def make() -> None:
        Artist.create(name="Ann", created_at=1)
        for name in ("Rag", "Waltz"):
            track = Track.create(name=name, duration=1, created_at=1)
            TrackArtist.create(track=track, artist=1, position=0)
        user = users.by_email(EVE)
        eve = Identity(user.id, "Eve", None, False, True, True, False, 1, "t", now + DAY)
        own = [ReportedPlay(1, now - DAY - at * MINUTE) for at in range(3)]
        ingest.report(own, now=now - 180 * MINUTE, actor=eve)
        ingest.report([ReportedPlay(1 + at // 3, now - at * 3 * DAY, "x") for at in range(4)], now=now, actor=eve)

    store.write(make).result()
    return now


def test_the_list_shows_what_an_account_reported_and_when(run: Run, ask: Json, now: int) -> None:
    rows = ask("plays", "list", "--user", EVE)
    assert [row["listener"] for row in rows] == ["other"] * 4 + ["own"] * 3
    assert rows[3] == {
        "played_at": isoformat(now - 9 * DAY),
        "track_id": 2,
        "track": "Waltz",
        "listener": "other",
        "reported_at": isoformat(now),
    }
    assert len(ask("plays", "list", EVE, "--since", "1h")) == 4
    assert [row["track"] for row in ask("plays", "list", EVE, "--track", "2")] == ["Waltz"]
    shown = run("plays", "list", EVE, "--limit", "2")
    assert shown.stdout.splitlines()[0].split("  ")[0] == "played (UTC)"
    assert shown.stderr == "The newest 2 of 7 plays. --limit shows more.\n"
    assert run("plays", "list", EVE).stderr == ""
    assert "There is no account" in run("plays", "list", "bob@label.test", expect=1).stderr
    assert "is not a valid time" in run("plays", "list", EVE, "--since", "soon", expect=2).stderr
    run("plays", "list", EVE, "--track", "0", expect=2)


def test_a_withdrawal_shows_what_goes_and_leaves_exact_figures(run: Run, ask: Json, store: Store, now: int) -> None:
    first, last = to_date(day_of(now - 9 * DAY)), to_date(day_of(now))
    about = f"4 plays of 2 tracks, played from {first} to {last}, reported since "
    refused = run("plays", "withdraw", EVE, "--since", isoformat(now - MINUTE), expect=1)
    assert refused.stderr.startswith(f"Error: This deletes {about}")
    assert refused.stderr.endswith("To confirm this without a terminal, add --yes.\n")
    assert len(ask("plays", "list", EVE)) == 7

    done = run("plays", "withdraw", EVE, "--since", isoformat(now - MINUTE), "--yes")
    assert done.stdout.splitlines() == ["track id  track  plays", "1         Rag    3", "2         Waltz  1"]
    assert done.stderr.splitlines() == [
        f"{EVE} reported {about}{isoformat(now - MINUTE)}.",
        "Withdrew 4 plays.",
    ]
    assert [row["listener"] for row in ask("plays", "list", EVE)] == ["own"] * 3
    assert ask("plays", "recount", "--check")["differing"] == 0
    events = store.read(lambda: security_events.find(limit=9)).result()
    user = store.read(lambda: users.by_email(EVE)).result()
    assert events[-1][1:] == ("plays.withdrawn", user.id, None, "cli", f"{about}{isoformat(now - MINUTE)}", None)

    rest = ask("plays", "withdraw", EVE, "--track", "1", "--yes")
    assert rest == {
        "tracks": [{"track_id": 1, "track": "Rag", "plays": 3}],
        "days": len({day_of(now - DAY - at * MINUTE) for at in range(3)}),
        "first_day": to_date(day_of(now - DAY - 2 * MINUTE)).isoformat(),
        "last_day": to_date(day_of(now - DAY)).isoformat(),
        "kept_from": None,
        "withdrawn": 3,
    }
    assert ask("plays", "recount", "--check")["plays"] == 0
    nothing = run("plays", "withdraw", EVE)
    assert nothing.stderr.splitlines() == [f"{EVE} reported no plays.", "Withdrew 0 plays."]
    assert len(store.read(lambda: security_events.find(limit=9)).result()) == len(events) + 1


@pytest.mark.usefixtures("now")
def test_a_withdrawal_asks_on_a_terminal(run: Run, ask: Json) -> None:
    terminal = Terminal()
    question = "Delete 7 plays? [y/N]: "
    shown = terminal.run("plays", "withdraw", EVE, answers={question: "n\n"}, expect=1)
    assert "7 plays of 2 tracks" in shown
    assert len(ask("plays", "list", EVE)) == 7
    assert "Withdrew 7 plays." in terminal.run("plays", "withdraw", EVE, answers={question: "y\n"})
    assert run("plays", "list", EVE).stdout.count("\n") == 1
    terminal.close()


@pytest.mark.usefixtures("now")
def test_plays_of_deleted_days_are_named_and_deleting_them_is_an_event(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, ask: Json
) -> None:
    monkeypatch.setenv("MUSICSVC_PLAYS__KEEP_DAYS", "4")
    for _ in range(2):
        run("plays", "prune")
    events = store.read(lambda: security_events.find(limit=9)).result()
    kept_from = ask("plays", "recount", "--check")["kept_from"]
    assert [event[1:] for event in events if event.kind == "plays.pruned"] == [
        ("plays.pruned", None, None, "cli", f"2 plays before {kept_from}", None)
    ]
    done = run("plays", "withdraw", EVE, "--yes")
    assert done.stderr.splitlines()[1:] == [
        f"Plays before {kept_from} cannot be withdrawn: only their counts are kept, not the plays themselves.",
        "Withdrew 5 plays.",
    ]
    assert ask("plays", "recount", "--check")["differing"] == 0
