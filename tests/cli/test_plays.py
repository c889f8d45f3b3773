"""`musicsvc import plays` and `musicsvc plays`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from peewee import SQL

from musicsvc.clock import DAY, MINUTE, Clock, isoformat, to_datetime
from musicsvc.store.accounts import users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.histories import known
from musicsvc.store.models import Artist, PlayCount, Track, TrackArtist
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.plays.periods import day_of, to_date
from musicsvc.store.plays.rollups import counts
from musicsvc.store.security import security_events
from tests.cli.conftest import Json, Run
from tests.cli.test_terminal import Terminal
from tests.support.bounds import Bounds
from tests.support.command import run_in_process

TABLE = """when,song,by,station
2014-06-16T12:00:00Z,Rag,Ann,KQXX
1402920000,Rag,Ann,WXYZ
1402920000,Waltz,Bea,WXYZ
soon,Rag,Ann,WXYZ
"""
PAIRS = ("--map", "when=played_at", "--map", "song=track", "by=artist", "station=listener")


@pytest.fixture
def table(tmp_path: Path, store: Store) -> str:
    def make() -> None:
        Artist.create(name="Ann", created_at=1)
        Track.create(name="Rag", duration=1, created_at=1)
        TrackArtist.create(track=1, artist=1, position=0)

    store.write(make).result()
    file = tmp_path / "plays.csv"
    file.write_text(TABLE)
    return str(file)


@pytest.mark.slow
def test_a_recount_proves_the_figures_and_puts_them_right(run: Run, ask: Json, store: Store, table: str) -> None:
    run("import", "plays", table, *PAIRS)
    assert "2 plays of 1 day counted" in run("plays", "recount", "--check").stderr
    store.write(lambda: PlayCount.update(plays=9).where(SQL(counts.KIND) == 1).execute()).result()
    line = [sys.executable, "-m", "musicsvc", "plays", "recount", "--check"]
    wrong = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert [re.split(" {2,}", row.strip()) for row in wrong.stdout.splitlines()] == [
        ["row", "stored plays / listeners", "counted"],
        ["track 1, 2014-06-16", "9 / 2", "2 / 2"],
        ["track 1, all time", "2 / 0", "9 / 0"],
    ]
    assert "To repair these counts, run the command without --check." in wrong.stderr
    report = ask("plays", "recount")
    assert (report["differing"], report["mended"], report["kept_from"]) == (1, True, None)
    assert report["differences"] == [{"row": "track 1, 2014-06-16", "stored": [9, 2], "counted": [2, 2]}]
    assert ask("plays", "recount", "--check")["differing"] == 0


def test_differences_beyond_the_first_ones_are_counted(run: Run, store: Store, table: str, bounds: Bounds) -> None:
    run("import", "plays", table, *PAIRS)
    store.write(lambda: PlayCount.update(plays=9).execute()).result()
    bounds(differences_shown=1)
    found = run_in_process(["plays", "recount", "--check"])
    differing = json.loads(run_in_process(["plays", "recount", "--check", "--json"]).stdout)["differing"]
    assert differing > 1
    assert len(found.stdout.splitlines()) == 2
    assert f"\n… and {differing - 1} more.\n" in f"\n{found.stderr}"


@pytest.mark.slow
def test_every_format_of_a_history_can_be_named_and_an_unknown_one_lists_them(run: Run, tmp_path: Path) -> None:
    names = [*formats.FORMATS, *known.FORMATS]
    for name in names:
        done = run_in_process(["import", "plays", str(tmp_path / "nothing"), "--format", name])
        assert "Invalid value for '--format'" not in done.stderr, name
    refused = " ".join(run("import", "plays", "x.csv", "--format", "mp3", expect=2).stderr.split())
    assert "There is no format mp3." in refused
    assert f"The formats are {', '.join(names)}." in refused


# `musicsvc plays list` and `musicsvc plays withdraw`.

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
    since = f"{to_datetime(now - MINUTE):%Y-%m-%d %H:%M:%S} UTC"
    refused = run("plays", "withdraw", EVE, "--since", isoformat(now - MINUTE), expect=1)
    assert refused.stderr.startswith(f"Error: This deletes {about}")
    assert refused.stderr.endswith("To confirm this without a terminal, add --yes.\n")
    assert len(ask("plays", "list", EVE)) == 7

    done = run("plays", "withdraw", EVE, "--since", isoformat(now - MINUTE), "--yes")
    assert done.stdout.splitlines() == ["track id  track  plays", "1         Rag    3", "2         Waltz  1"]
    assert done.stderr.splitlines() == [
        f"{EVE} reported {about}{since}.",
        "Withdrew 4 plays.",
    ]
    assert [row["listener"] for row in ask("plays", "list", EVE)] == ["own"] * 3
    assert ask("plays", "recount", "--check")["differing"] == 0
    events = store.read(lambda: security_events.find(limit=9)).result()
    user = store.read(lambda: users.by_email(EVE)).result()
    assert events[-1][1:] == ("plays.withdrawn", user.id, None, "cli", f"{about}{since}", None)

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
    assert run("plays", "withdraw", EVE, "--since", "1h").stderr.startswith(f"{EVE} reported no such plays.\n")
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
    monkeypatch.setenv("MUSICSVC_PLAYS__KEEP_DAYS", "1000000")  # longer ago than the first year
    assert run("plays", "prune").stderr.endswith("Deleted 0 plays before 1970-01-01.\n")
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
