"""`musicsvc user`."""

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


def test_an_account_is_created_without_a_prompt_and_shown(ask: Json) -> None:
    made = ask("user", "create", "Ada@example.test", "--display-name", "Ada L.", "--admin")
    assert {key: made[key] for key in ("id", "email", "display_name", "admin", "api_access", "has_password")} == {
        "id": 1,
        "email": "Ada@example.test",
        "display_name": "Ada L.",
        "admin": True,
        "api_access": False,
        "has_password": False,
    }
    shown = {key: value for key, value in made.items() if not key.startswith("password_link")}
    assert ask("user", "show", "ADA@example.TEST") == shown
    assert ask("user", "list") == [shown]


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


def test_a_suspended_account_gets_no_link_and_the_refusal_names_the_remedy(run: Run) -> None:
    run("user", "create", EMAIL)
    run("user", "suspend", EMAIL)
    refused = run("user", "password-link", EMAIL, expect=1).stderr
    assert refused == f"Error: The account is suspended. Run: musicsvc user reinstate {EMAIL}\n"
    assert "There is no account" in run("user", "password-link", "bob@example.test", expect=1).stderr


def test_an_email_that_is_taken_or_unknown_is_one_line(run: Run) -> None:
    run("user", "create", EMAIL)
    again = run("user", "create", "ADA@example.test", expect=1)
    assert again.stderr == "Error: email: The email has already been taken.\n"
    assert "must be a valid email address" in run("user", "create", "nobody", expect=1).stderr
    assert run("user", "show", "bob@example.test", expect=1).stderr == "Error: There is no account bob@example.test.\n"


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
    run("user", "create", EMAIL, "--password-stdin", stdin="short\n", expect=1)
    run("user", "create", EMAIL, "--password-stdin", stdin="", expect=1)
    run("user", "create", EMAIL)
    assert "must not be the email" in run("user", "password", EMAIL, "--password-stdin", stdin=EMAIL, expect=1).stderr
    assert password_hash(store) is None


def test_without_a_terminal_the_prompt_names_the_option_to_use(run: Run) -> None:
    run("user", "create", EMAIL)
    assert "--password-stdin" in run("user", "password", EMAIL, expect=1).stderr


def test_the_commonest_passwords_are_refused_once_the_service_is_hosted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://music.example.test")
    refused = run("user", "create", EMAIL, "--password-stdin", stdin="password", expect=1)
    assert "most common" in refused.stderr


def test_an_account_is_suspended_and_reinstated(ask: Json) -> None:
    ask("user", "create", EMAIL)
    suspended = ask("user", "suspend", EMAIL, "--reason", "scraping")
    assert suspended["suspended_at"].endswith("Z")
    assert suspended["suspended_reason"] == "scraping"
    assert ask("user", "reinstate", EMAIL)["suspended_at"] is None


def test_lists_are_searched_by_text_and_cut_to_the_newest(run: Run, ask: Json) -> None:
    names = ("Zoë 100%", "zoe b_b", "Bob", "Łukasz")
    for number, name in enumerate(names):
        email = f"user{number}@{'label' if number % 2 else 'band'}.test"
        run("user", "create", email, "--display-name", name)
        run("access", "grant", email)
        run("token", "create", email, "--name", f"tok of {name}")
    for number in range(3):
        asked = f"asked{number}@fans.test"
        run(
            "access",
            "request",
            asked,
            "--use-case",
            f"wallpaper {number}",
            "--volume",
            "1",
            "--organization",
            "Zoe Ltd",
        )

    def found(*line: str) -> list[str]:
        return [row["email"][:-5] for row in ask(*line)]

    assert found("user", "list", "--search", "ZOE") == ["user0@band", "user1@label"]
    assert found("user", "list", "--search", "lukasz") == ["user3@label"]
    assert found("user", "list", "--search", "%") == ["user0@band"]
    assert found("user", "list", "--search", "_") == ["user1@label"]
    assert found("user", "list", "--search", "@LABEL") == ["user1@label", "user3@label"]
    assert found("user", "list", "--search", "band", "--limit", "1") == ["user2@band"]
    assert found("user", "list", "--limit", "2") == ["user2@band", "user3@label"]
    assert found("user", "list", "--search", "nobody") == []
    assert found("token", "list", "--search", "of zoe") == ["user0@band", "user1@label"]
    assert found("token", "list", "--search", "band", "--limit", "1") == ["user2@band"]
    assert found("token", "list", "--user", "user1@label.test", "--search", "zoe", "--limit", "5") == ["user1@label"]
    assert found("token", "list", "--limit", "3") == ["user1@label", "user2@band", "user3@label"]
    assert found("access", "list", "--search", "zoe ltd", "--limit", "2") == ["asked1@fans", "asked2@fans"]
    assert found("access", "list", "--search", "zoe", "--limit", "4") == [
        *(f"asked{n}@fans" for n in range(3)),
        "user1@label",
    ]
    assert found("access", "list", "--search", "paper 1") == ["asked1@fans"]
    assert found("access", "list", "--limit", "5") == [
        *(f"asked{n}@fans" for n in range(3)),
        "user2@band",
        "user3@label",
    ]
    assert len(found("access", "list")) == 7
    run("user", "list", "--limit", "0", expect=2)
