"""`musicsvc abuse`: the rules replayed over the activity log, and explanations for a token."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from musicsvc.clock import DAY, SECOND, Clock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token
from musicsvc.store.security import security_events
from tests.cli.conftest import Json, Run
from tests.support.traffic import BEGAN, SlidingWindow, profiles

DOCS = Path(__file__).resolve().parents[2] / "docs" / "abuse.md"
TRAFFIC = {profile.name: profile for profile in (*profiles("honest"), *profiles("attacks"))}


@pytest.fixture
def played(store: Store) -> Callable[..., list[int]]:
    """Return a function that logs traffic profiles, each with a new token or with the given one."""

    def play(*names: str, token_id: int | None = None, began: int | None = None) -> list[int]:
        now, email = Clock().now(), "ann@label.test"

        def make() -> list[int]:
            user = users.find_by_email(email) or users.create(email, api_access=True, now=now - 9 * DAY)
            assert user.id == 1
            return [tokens.create(user, name[:50], now=now - 9 * DAY)[0].id for name in names]

        made = store.write(make).result() if token_id is None else [token_id]
        shift = (now - DAY if began is None else began) - BEGAN
        entries: list[Entry] = []
        for name, each in zip(names, made, strict=True):
            entries += [
                entry._replace(account_id=1, token_id=each, at=entry.at + shift)
                for entry in TRAFFIC[name].entries(SlidingWindow())
            ]
        with activity_log.build(store.url) as log:
            log.prepare()
            log.write(lambda: calls.add(entries)).result()
        return made

    return play


def test_a_dry_run_lists_violations_and_changes_nothing(run: Run, ask: Json, played: Callable[..., list[int]]) -> None:
    played("stale cache", "eight threads", "private playlists", "catalog by pages")
    rows = ask("abuse", "check", "--dry-run")

    assert [(row["token_id"], row["rule"], row["outcome"]) for row in rows] == [
        (3, "probing", "would be revoked"),
        (4, "scraping", "would be revoked"),
    ]
    assert rows[0]["email"] == "ann@label.test"
    assert rows[0]["reason"].startswith("abuse: 50 different resources")
    assert {token["state"] for token in ask("token", "list")} == {"valid"}
    assert "probing" in run("abuse", "check", "--dry-run").stdout
    assert ask("abuse", "check", "--dry-run", "--since", "2h") == []


def test_violations_revoke_tokens_and_suspend_the_account_and_a_reinstated_token_stays_valid(
    run: Run, ask: Json, played: Callable[..., list[int]], store: Store
) -> None:
    played("hammer", "private playlists", "dressed up")
    outcomes = [row["outcome"] for row in ask("abuse", "check")]
    assert outcomes == ["revoked", "revoked", "revoked, account suspended"]
    listed = ask("token", "list")
    assert [token["state"] for token in listed] == ["revoked"] * 3
    assert listed[0]["revoked_reason"].startswith("abuse: ")
    shown = ask("user", "show", "ann@label.test")
    assert shown["suspended_reason"] == "abuse: 3 tokens were revoked for abuse"
    assert [row["outcome"] for row in ask("abuse", "check")] == ["already revoked"] * 3

    done = run("token", "reinstate", "2")
    assert done.stderr == (
        "Token 2 of ann@label.test is valid. The account is suspended. Run: musicsvc user reinstate ann@label.test\n"
    )
    assert [row["token_id"] for row in ask("abuse", "check")] == [1, 3]
    noted = store.read(lambda: security_events.find(security_events.Filter(token_id=2), limit=9)).result()
    assert [(event.kind, event.actor) for event in noted[1:]] == [
        ("token.revoked", "abuse"),
        ("token.reinstated", "cli"),
    ]


def test_only_calls_after_a_reinstatement_count(ask: Json, played: Callable[..., list[int]]) -> None:
    played("private playlists")
    ask("abuse", "check")
    ask("token", "reinstate", "1")
    assert ask("abuse", "check", "--dry-run") == []
    assert ask("abuse", "explain", "1")["answers"] == []
    played("private playlists", token_id=1, began=Clock().now() + SECOND)
    assert [row["token_id"] for row in ask("abuse", "check", "--dry-run")] == [1]


def test_a_token_is_explained_with_its_figures(run: Run, ask: Json, played: Callable[..., list[int]]) -> None:
    played("private playlists", "stale cache")
    broke = ask("abuse", "explain", "1")
    assert broke["rule"] == "probing"
    assert broke["verdict"].startswith("abuse: 50 different resources")
    assert broke["answers"] == [{"calls": 50, "status": 404, "route": "/api/v1/playlists/{id}"}]
    assert broke["first_at"] < broke["last_at"]

    near = ask("abuse", "explain", "2")
    assert near["rule"] is None
    assert near["refusals"] == {"most": 0, "too_early": 0, "allowed": 100, "seconds": 300}
    assert (near["probes"]["most"], near["probes"]["calls"], near["probes"]["successes"]) == (30, 81, 51)
    text = run("abuse", "explain", "2").stdout
    assert "30 of 50 different resources denied in 60 s; 51 of 81 calls successful (10 % required)" in text
    assert "/api/v1/playlists/{id}" in text


def test_resources_that_the_account_read_before_or_that_were_deleted_do_not_count_as_probes(
    ask: Json, played: Callable[..., list[int]]
) -> None:
    played("gone private", "deleted tracks", "vanishing playlists", "insights of the catalog")
    assert [(row["token_id"], row["rule"]) for row in ask("abuse", "check", "--dry-run")] == [(4, "probing")]
    for token_id in (1, 2, 3):
        found = ask("abuse", "explain", str(token_id))
        assert (found["rule"], found["probes"]["most"]) == (None, 0)
        assert sum(row["calls"] for row in found["answers"] if row["status"] == 404) >= 300
    assert ask("abuse", "explain", "4")["rule"] == "probing"


def test_calls_of_an_earlier_token_with_the_same_id_do_not_count(
    ask: Json, played: Callable[..., list[int]], store: Store
) -> None:
    """A restored database reuses ids, but the log is not restored."""
    (lost,) = played("private playlists")

    def take_over(made: int, account_id: int) -> None:
        Token.update(user=account_id, created_at=made).where(Token.id == lost).execute()

    assert len(ask("abuse", "check", "--dry-run")) == 1
    now = Clock().now()
    ben = store.write(lambda: users.create("ben@label.test", api_access=True, now=now).id).result()
    for made, account_id in ((now, 1), (now, ben), (now - 9 * DAY, ben)):
        store.write(partial(take_over, made, account_id)).result()
        assert ask("abuse", "check", "--dry-run") == []
        assert ask("abuse", "explain", str(lost))["answers"] == []


def test_the_commands_of_the_documentation_work(run: Run, played: Callable[..., list[int]]) -> None:
    played(*["emptied library"] * 6, "private playlists")
    shown = DOCS.read_text("utf-8").split("## Inspecting and undoing")[1].split("```")[1]
    lines = [line.partition("#")[0].split() for line in shown.splitlines() if line.startswith("musicsvc")]
    assert len(lines) == 6
    for _, *arguments in lines:
        run(*arguments)
