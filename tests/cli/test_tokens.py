"""`musicsvc token`."""

import io
import sys

import pytest
import typer

from musicsvc.cli import secret_input
from musicsvc.clock import DAY, Clock, parse
from musicsvc.errors import Failure
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token
from tests.cli.conftest import Json, Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

EMAIL = "ada@example.test"


@pytest.fixture
def ada(store: Store) -> str:
    store.write(lambda: users.create(EMAIL, api_access=True, now=Clock().now())).result()
    return EMAIL


def test_a_token_is_printed_alone_once(run: Run, ask: Json, ada: str) -> None:
    done = run("token", "create", ada, "--name", "laptop")
    value = done.stdout.removesuffix("\n")
    assert tokens.well_formed(value)
    assert done.stderr == ""
    (listed,) = ask("token", "list")
    assert (listed["name"], listed["email"], listed["state"]) == ("laptop", ada, "valid")
    assert listed["last_four"] == value[-4:]
    assert value not in str(listed)


def test_json_gives_id_name_value_and_the_end_in_90_days(ask: Json, ada: str) -> None:
    before = Clock().now()
    made = ask("token", "create", ada, "--name", "laptop")
    assert list(made) == ["id", "name", "token", "expires_at"]
    assert before + 90 * DAY <= parse(made["expires_at"]) <= Clock().now() + 90 * DAY


def test_a_token_can_be_limited_to_reading_and_to_fewer_days(run: Run, ask: Json, ada: str) -> None:
    before = Clock().now()
    made = ask("token", "create", ada, "--name", "dashboard", "--scope", "read", "--days", "7")
    ask("token", "create", ada, "--name", "laptop")
    assert before + 7 * DAY <= parse(made["expires_at"]) <= Clock().now() + 7 * DAY
    assert [(each["name"], each["scope"]) for each in ask("token", "list")] == [
        ("dashboard", "read"),
        ("laptop", "read-write"),
    ]
    assert ask("token", "inspect", stdin=made["token"])["scope"] == "read"
    run("token", "create", ada, "--name", "laptop", "--scope", "write", expect=2)
    run("token", "create", ada, "--name", "laptop", "--days", "91", expect=2)


def test_without_access_or_suspended_the_refusal_names_the_remedy(run: Run) -> None:
    run("user", "create", EMAIL)
    refused = run("token", "create", EMAIL, "--name", "laptop", expect=1)
    assert refused.stderr == f"Error: The account has no API access. Run: musicsvc access grant {EMAIL}\n"
    run("user", "suspend", EMAIL)
    refused = run("token", "create", EMAIL, "--name", "laptop", expect=1)
    assert refused.stderr == f"Error: The account is suspended. Run: musicsvc user reinstate {EMAIL}\n"
    run("token", "create", EMAIL, "--name", "ab", expect=1)


def test_a_regenerated_token_has_another_value_and_a_revoked_one_cannot_be(run: Run, ask: Json, ada: str) -> None:
    first = ask("token", "create", ada, "--name", "laptop")
    second = ask("token", "regenerate", "1")
    assert (second["id"], second["name"]) == (first["id"], first["name"])
    assert second["token"] != first["token"]
    assert "is not in the database" in run("token", "inspect", stdin=first["token"], expect=1).stderr
    assert ask("token", "inspect", stdin=second["token"] + "\n")["state"] == "valid"

    revoked = ask("token", "revoke", "1", "--reason", "lost")
    assert (revoked["state"], revoked["revoked_reason"]) == ("revoked", "lost")
    assert ask("token", "inspect", stdin=second["token"])["state"] == "revoked"
    assert "is revoked and cannot be regenerated" in run("token", "regenerate", "1", expect=1).stderr
    assert ask("token", "reinstate", "1")["state"] == "valid"
    assert tokens.well_formed(run("token", "regenerate", "1").stdout.strip())


def test_an_expired_token_is_listed_and_can_be_regenerated(ask: Json, ada: str, store: Store) -> None:
    def expired() -> Token:
        return tokens.create(users.by_email(ada), "old one", now=Clock().now() - 90 * DAY)[0]

    token = store.write(expired).result()
    assert ask("token", "list", "--user", ada)[0]["state"] == "expired"
    assert tokens.well_formed(ask("token", "regenerate", str(token.id))["token"])
    assert ask("token", "list")[0]["state"] == "valid"


def test_a_token_value_is_not_accepted_as_an_argument(run: Run) -> None:
    run("token", "inspect", tokens.generate(), expect=2)


@pytest.mark.parametrize("value", ["", "\x00", "msvc_" + "x" * 46])
def test_an_invalid_token_is_one_line(run: Run, value: str) -> None:
    run("token", "inspect", stdin=value, expect=1)


def test_an_unknown_token_or_account_is_one_line(run: Run) -> None:
    assert run("token", "revoke", "9", expect=1).stderr == "Error: There is no token 9.\n"
    assert "There is no account" in run("token", "list", "--user", EMAIL, expect=1).stderr


def test_a_secret_on_stdin_loses_one_line_break_and_must_be_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(content: bytes) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
        return secret_input.read_stdin("password")

    assert [read(content) for content in (b"a\r\n", b"a\n", b"a\n\n", b" \xc3\xa9 ")] == ["a", "a", "a\n", " é "]
    for content, message in (
        (b"\xff", "The password on stdin is not valid UTF-8. Encode it in UTF-8."),
        (b"\r\n", "stdin is empty. Pass the password on stdin."),
    ):
        with pytest.raises(Failure) as refusal:
            read(content)
        assert refusal.value.message == message


def test_prompts_hide_the_input_and_are_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    asked: list[tuple[str, dict[str, bool]]] = []

    def prompt(question: str, **options: bool) -> str:
        asked.append((question, options))
        return "typed"

    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", Keyboard())
    assert [secret_input.prompt_once("Token"), secret_input.prompt_twice("New", "--stdin")] == ["typed"] * 2
    hidden = {"hide_input": True, "err": True}
    assert asked == [("Token", hidden), ("New", hidden | {"confirmation_prompt": True})]
