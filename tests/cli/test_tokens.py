"""`musicsvc token`."""

import io
import sys

import pytest
import typer

from musicsvc.cli import secret_input
from musicsvc.clock import DAY, Clock
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


def test_an_expired_token_is_listed_and_can_be_regenerated(ask: Json, ada: str, store: Store) -> None:
    def expired() -> Token:
        return tokens.create(users.by_email(ada), "old one", now=Clock().now() - 90 * DAY)[0]

    token = store.write(expired).result()
    assert ask("token", "list", "--user", ada)[0]["state"] == "expired"
    assert tokens.well_formed(ask("token", "regenerate", str(token.id))["token"])
    assert ask("token", "list")[0]["state"] == "valid"


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


def test_the_tokens_that_expire_within_a_time_are_listed(run: Run, ask: Json, ada: str, store: Store) -> None:
    def made() -> None:
        for name, days in (("soon", 3), ("revoked", 4), ("later", 15), ("past", 1)):
            at = Clock().now() - (2 * DAY if name == "past" else 0)
            token, _ = tokens.create(users.by_email(ada), name, days=days, now=at)
            if name == "revoked":
                tokens.revoke(token.id, "lost", now=at)

    store.write(made).result()
    assert [token["name"] for token in ask("token", "list", "--expiring", "14d")] == ["soon"]
    assert [token["name"] for token in ask("token", "list", "--expiring", "16d", "--user", ada)] == ["soon", "later"]
    assert "soon is not a duration such as 24h" in run("token", "list", "--expiring", "soon", expect=2).stderr


def test_inspect_says_that_a_token_was_revoked_within_its_overlap(run: Run, ask: Json, ada: str) -> None:
    first = ask("token", "create", ada, "--name", "laptop")
    second = ask("token", "regenerate", str(first["id"]), "--overlap", "24h")
    revoked = ask("token", "revoke", str(first["id"]), "--reason", "lost")
    shown = [ask("token", "inspect", stdin=each["token"]) for each in (first, second)]
    at = revoked["revoked_at"]
    assert [each["refused_because"] for each in shown] == [
        f"The token was regenerated, and then revoked within its overlap, at {at}: lost.",
        f"The token was revoked at {at}: lost.",
    ]
    assert {each["former_value_expires_at"] for each in (*shown, revoked)} == {at}
    run("token", "reinstate", str(first["id"]))
    assert [ask("token", "inspect", stdin=each["token"])["refused_because"] for each in (first, second)] == [None, None]


def test_inspect_says_why_a_value_is_refused(run: Run, ask: Json, ada: str, store: Store) -> None:
    first = ask("token", "create", ada, "--name", "laptop")

    def inspected(value: str) -> str | None:
        shown: str | None = ask("token", "inspect", stdin=value)["refused_because"]
        return shown

    assert inspected(first["token"]) is None
    second = ask("token", "regenerate", str(first["id"]), "--overlap", "24h")
    assert [inspected(first["token"]), inspected(second["token"])] == [None, None]
    assert (ask("token", "list")[0]["former_value_expires_at"] or "")[:4].isdigit()
    store.write(lambda: Token.update(former_expires_at=Clock().now() - 1).execute()).result()
    assert "its former value expired at" in (inspected(first["token"]) or "")
    assert inspected(second["token"]) is None
    run("access", "revoke", ada)
    assert inspected(second["token"]) == "The account has no API access."
    assert ask("user", "suspend", ada, "--reason", " ")["suspended_reason"] is None
    assert inspected(second["token"]) == "The account is suspended."
    suspended = run("user", "suspend", ada, "--reason", "lost")
    assert suspended.stderr == f"{ada} is suspended. It was before, and the earlier reason stays: none.\n"
    run("token", "revoke", str(first["id"]), "--reason", "lost")
    for value in (first["token"], second["token"]):
        assert (inspected(value) or "").endswith(": lost.")
    again = run("token", "revoke", str(first["id"]), "--reason", "found in a log")
    assert again.stderr.endswith(" is revoked. It was before, and the earlier reason stays: lost.\n")
    assert ask("token", "reinstate", str(first["id"]))["revoked_reason"] is None
    assert ask("token", "revoke", str(first["id"]), "--reason", "")["revoked_reason"] == "revoked by an operator"
    too_long = run("token", "regenerate", str(first["id"]), "--overlap", "25h", expect=2)
    assert "for at most 24h" in too_long.stderr
    for line in (("token", "revoke", str(first["id"])), ("user", "suspend", ada)):
        assert "Must have 1 to 1000 characters." in run(*line, "--reason", "x" * 1_001, expect=2).stderr
