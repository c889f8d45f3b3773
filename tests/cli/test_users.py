"""`musicsvc user`."""

from pathlib import Path

import pytest

from musicsvc.clock import DAY, Clock, parse
from musicsvc.errors import NotFound
from musicsvc.store.accounts import password_links, passwords, users
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Json, Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

EMAIL = "ada@example.test"
ADDRESS_UNKNOWN = "No running server was found: the link has the address of the settings, http://127.0.0.1:8080.\n"


def password_hash(store: Store) -> str | None:
    found: str | None = store.read(lambda: users.by_email(EMAIL).password_hash).result()
    return found


def account_of(store: Store, link: str) -> str:
    """Return the e-mail of the account whose password the link sets."""
    address, _, secret = link.rpartition("/")
    assert address == "http://127.0.0.1:8080/password"
    found: str = store.read(lambda: password_links.find(secret, now=Clock().now()).email).result()
    return found


def test_a_new_account_without_a_password_gets_a_link_alone_on_stdout(run: Run, ask: Json, store: Store) -> None:
    created = run("user", "create", EMAIL)
    assert created.stdout.count("\n") == 1
    assert created.stderr == f"Created account 1 for {EMAIL}.\n{ADDRESS_UNKNOWN}"
    assert account_of(store, created.stdout.strip()) == EMAIL

    before = Clock().now()
    made = ask("user", "create", "bob@example.test")
    assert account_of(store, made["password_link"]) == "bob@example.test"
    assert before + DAY <= parse(made["password_link_expires_at"]) <= Clock().now() + DAY


def test_an_account_with_a_password_gets_no_link_until_it_is_asked_for(run: Run, ask: Json, store: Store) -> None:
    assert run("user", "create", EMAIL, "--password-stdin", stdin="long enough").stdout == ""
    made = ask("user", "create", "bob@example.test", "--password-stdin", stdin="long enough")
    assert (made["password_link"], made["password_link_expires_at"]) == (None, None)

    done = run("user", "password-link", EMAIL.upper())
    assert done.stderr == ADDRESS_UNKNOWN
    assert account_of(store, done.stdout.strip()) == EMAIL
    again = ask("user", "password-link", EMAIL)
    assert list(again) == ["email", "password_link", "password_link_expires_at"]
    assert account_of(store, again["password_link"]) == again["email"] == EMAIL
    with pytest.raises(NotFound):
        account_of(store, done.stdout.strip())


def test_the_link_begins_with_the_public_url_and_shows_in_no_activity(
    run: Run, ask: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://music.example.test")
    link = run("user", "create", EMAIL).stdout.strip()
    address, _, secret = link.rpartition("/")
    assert address == "https://music.example.test/password"
    events = ask("activity")
    assert [event["kind"] for event in events] == ["account.created", "password.link_created"]
    assert secret not in str(events)


def test_a_password_from_stdin_loses_only_its_last_line_break(run: Run, store: Store) -> None:
    run("user", "create", EMAIL, "--password-stdin", stdin=" two words \n")
    hashed = password_hash(store)
    assert hashed
    assert passwords.verify(hashed, " two words ")
    run("user", "password", EMAIL, "--password-stdin", stdin="another one")
    renewed = password_hash(store)
    assert renewed
    assert passwords.verify(renewed, "another one")


def test_a_password_that_breaks_the_rule_changes_nothing(run: Run, store: Store) -> None:
    run("user", "create", EMAIL, "--password-stdin", stdin="short\n", expect=2)
    run("user", "create", EMAIL, "--password-stdin", stdin="", expect=1)
    run("user", "create", EMAIL)
    assert "must not be the e-mail" in run("user", "password", EMAIL, "--password-stdin", stdin=EMAIL, expect=2).stderr
    assert password_hash(store) is None


def test_the_commonest_passwords_are_refused_once_the_service_is_hosted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://music.example.test")
    refused = run("user", "create", EMAIL, "--password-stdin", stdin="password", expect=2)
    assert "most common" in refused.stderr


def test_a_deletion_that_hands_artists_to_the_account_itself_writes_no_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("user", "create", EMAIL)
    refused = run("user", "delete", EMAIL, "--artists-to", EMAIL, "--yes", expect=1)
    assert refused.stderr == f"Error: Both accounts are {EMAIL}. Name two accounts.\n"
    assert not list(tmp_path.glob("account-*"))
