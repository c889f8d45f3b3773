"""`musicsvc seed`."""

import json
from subprocess import CompletedProcess

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token, User
from tests.cli.conftest import Json, Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


def check_added(first: CompletedProcess[str], store: Store, tokens: int) -> None:
    """Compare what was printed with the sample data."""
    assert "Warning" not in first.stderr
    assert "msvc_" not in first.stdout + first.stderr
    made = json.loads(first.stdout)
    catalog = {"accounts": 6, "artists": 17, "albums": 13, "tracks": 18, "comments": 18, "tokens": tokens}
    people = {"playlists": 7, "invitations": 8, "follows": 10, "likes": 10, "reposts": 4}
    rest = {"collections": 3, "conversations": 4, "messages": 7, "devices": 3, "choices": 4}
    assert made.pop("plays") > 20_000
    assert made == catalog | people | rest
    assert len(store.read(users.list).result()) == 6


def check_again(again: CompletedProcess[str]) -> None:
    # Today's plays come in as the day goes on, so that one may have come since.
    assert (again.stdout, again.stderr.splitlines()[0].rpartition(" ")[0]) in {
        ("", "All data exists already. Nothing was"),
        ("", "Added 1"),
    }


@pytest.mark.slow
def test_without_its_option_sample_data_has_no_accounts_that_can_sign_in_or_call_the_api(
    run: Run, ask: Json, store: Store
) -> None:
    def usable() -> int:
        with_rights = User.api_access | User.admin | User.reports_plays | ~User.password_hash.is_null()
        return User.select().where(with_rights).count() + Token.select().count()

    first = run("seed", "--json")
    check_added(first, store, tokens=0)
    assert "nobody can sign in or call the API with them. To make accounts with valid tokens" in first.stderr
    assert (store.read(usable).result(), ask("token", "list")) == (0, [])
    again = run("seed", "--accounts")
    check_again(again)
    assert again.stderr.splitlines()[-1] == (
        "Accounts that exist already keep their rights and got no token. Use --accounts with a new database."
    )
    assert store.read(usable).result() == 0


@pytest.mark.slow
def test_with_its_option_the_sample_data_is_added_once_and_no_token_is_printed(
    run: Run, ask: Json, store: Store
) -> None:
    first = run("seed", "--json", "--accounts")
    check_added(first, store, tokens=7)
    assert first.stderr.splitlines()[-1] == (
        "The accounts have API access and valid tokens. For a token's value: musicsvc token list, token regenerate ID."
    )
    assert [row["state"] for row in ask("token", "list")].count("valid") == 5
    check_again(run("seed", "--accounts"))
    assert "Remove --accounts or --scale" in run("seed", "--accounts", "--scale", "1", expect=2).stderr


@pytest.mark.slow
def test_a_database_with_other_accounts_causes_a_warning(run: Run) -> None:
    for email in ("ada@example.test", "DEMO@musicsvc.test"):
        run("user", "create", email)
    plain = run("seed", "--scale", "0.01").stderr
    assert "Warning" not in plain
    warning, made, _ = run("seed", "--accounts").stderr.splitlines()
    assert warning == (
        "Warning: The database has other accounts (1). This adds 5 accounts with 6 tokens"
        " and the administrator admin@musicsvc.test. To try them in a separate database: musicsvc serve --demo"
    )
    assert made.startswith("Added 5 accounts, ")
    assert "Warning" not in run("seed").stderr


@pytest.mark.slow
def test_a_database_with_other_accounts_causes_a_warning_without_tokens(run: Run) -> None:
    run("user", "create", "ada@example.test")
    assert run("seed").stderr.startswith(
        "Warning: The database has other accounts (1). This adds 6 accounts. To try them in a separate database: "
    )


def test_a_random_seed_needs_a_scale(run: Run) -> None:
    assert "--random-seed: Needs --scale." in run("seed", "--random-seed", "0", expect=2).stderr
