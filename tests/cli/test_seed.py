"""`musicsvc seed`."""

import json

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.cli.conftest import Json, Run


def test_the_sample_data_is_added_once_and_no_token_is_printed(run: Run, store: Store) -> None:
    first = run("seed", "--json")
    assert "Warning" not in first.stderr
    made = json.loads(first.stdout)
    catalog = {"accounts": 6, "artists": 17, "albums": 13, "tracks": 18, "comments": 18, "tokens": 7}
    people = {"playlists": 7, "invitations": 8, "follows": 10, "likes": 10, "reposts": 4}
    rest = {"collections": 3, "conversations": 4, "messages": 7, "devices": 3, "choices": 4}
    assert made.pop("plays") > 20_000
    assert made == catalog | people | rest
    assert len(store.read(users.list).result()) == 6
    again = run("seed")
    # Today's plays come in as the day goes on, so that one may have come since.
    assert (again.stdout, again.stderr.rpartition(" ")[0]) in {
        ("", "All data exists already. Nothing was"),
        ("", "Added 1"),
    }


def test_a_database_with_other_accounts_causes_a_warning(run: Run) -> None:
    for email in ("ada@example.test", "DEMO@musicsvc.test"):
        run("user", "create", email)
    warning, made = run("seed").stderr.splitlines()
    assert warning == (
        "Warning: The database has other accounts (1). This adds 5 accounts with 6 tokens"
        " and the administrator admin@musicsvc.test. To try them in a separate database: musicsvc serve --demo"
    )
    assert made.startswith("Added 5 accounts, ")
    assert "Warning" not in run("seed").stderr


def test_a_synthetic_catalog_has_the_size_of_its_scale(ask: Json, run: Run, store: Store) -> None:
    assert ask("seed", "--scale", "0.05", "--random-seed", "3") == {"artists": 50, "albums": 200, "tracks": 1000}
    assert store.read(Track.select().count).result() == 1000
    assert (
        run("seed", "--scale", "0.05", "--random-seed", "3").stderr == "All data exists already. Nothing was added.\n"
    )
    assert run("seed", "--scale", "0.05").stderr == "Added 50 artists, 200 albums, 1,000 tracks.\n"


def test_an_invalid_scale_is_wrong_usage(run: Run) -> None:
    for scale in ("0", "-1", "nan", "much"):
        run("seed", "--scale", scale, expect=2)
