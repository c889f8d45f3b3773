"""Secrets from files: the settings `database_url` and `database_read_url`, and the secrets of the demo."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.store.accounts import tokens
from musicsvc.store.engine.url import without_password
from tests.cli.conftest import Run
from tests.support.program import Program

pytestmark = pytest.mark.only_on("sqlite")
VARIABLE = "MUSICSVC_DATABASE_URL"
SECRET = "postgresql://music:three%20romances@db.internal/music"
SHOWN = "postgresql://music:***@db.internal/music"
Shown = Callable[[], tuple[str, str]]


@pytest.fixture
def shown(bare: Run) -> Shown:
    """Return a function that returns the value of database_url and its origin, as `config show` prints them."""

    def show() -> tuple[str, str]:
        done = bare("config", "show", "--json")
        table = bare("config", "show")
        assert "romances" not in done.stdout + done.stderr + table.stdout + table.stderr
        assert "no such setting" not in done.stderr
        (row,) = (row for row in json.loads(done.stdout) if row["name"] == "database_url")
        return row["value"], row["from"]

    return show


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a file with the secret and a newline at its end, as editors and `echo` write it."""
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    return file


def test_the_first_of_variable_file_credential_and_settings_file_counts(
    shown: Shown, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "folder" / "config.toml"
    assert shown()[1] == "default"
    settings.parent.mkdir()
    settings.write_text(f'database_url = "{SECRET}"\n')
    assert shown() == (SHOWN, str(settings))
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    assert shown() == (SHOWN, str(settings))
    credential = credentials / "database_url"
    credential.write_text(SECRET.replace("db.", "credential."))
    assert shown() == (SHOWN.replace("db.", "credential."), str(credential))
    monkeypatch.setenv(f"{VARIABLE}_FILE", str(secret))
    assert shown() == (SHOWN, f"{VARIABLE}_FILE ({secret})")
    monkeypatch.delenv(f"{VARIABLE}_FILE")
    monkeypatch.setenv(VARIABLE, SECRET.replace("db.", "variable."))
    assert shown() == (SHOWN.replace("db.", "variable."), VARIABLE)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_newline_at_the_end_does_not_belong_to_the_secret(
    bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(f"sqlite:///{tmp_path}/own.db{end}".encode())
    monkeypatch.setenv(f"{VARIABLE}_FILE", str(secret))
    bare("init")
    assert (tmp_path / "own.db").is_file()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, ": there is no file {}. Create it, or correct the variable."),
        (b"", ": the file {} is empty. Write the value into it."),
        (b" \n", ": the file {} is empty. Write the value into it."),
        (b"\xff", ": the file {} is not valid UTF-8."),
        (b"sqlite:////a\n\n", ": the file {} must contain the value as its only line, without control characters."),
        (b"sqlite:////a\0", ": the file {} must contain the value as its only line, without control characters."),
        (b"sqlite:///:memory:", "database_url"),
    ],
)
def test_a_file_that_holds_no_secret_is_named(
    bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, problem: str
) -> None:
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content)
    monkeypatch.setenv(f"{VARIABLE}_FILE", str(secret))
    line = bare("user", "list", expect=1).stderr
    if problem == "database_url":
        assert line.startswith(f"Error: Setting database_url ({VARIABLE}_FILE ({secret})): ")
    else:
        assert line == f"Error: {VARIABLE}_FILE{problem.format(secret)}\n"


def test_a_folder_a_pipe_and_two_sources_are_refused(
    bare: Run, tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (tmp_path, pipe):
        monkeypatch.setenv(f"{VARIABLE}_FILE", str(place))
        line = bare("user", "list", expect=1).stderr
        assert line == f"Error: {VARIABLE}_FILE: the file {place} is not a regular file.\n"
    monkeypatch.setenv(f"{VARIABLE}_FILE", str(secret))
    monkeypatch.setenv(VARIABLE, SECRET)
    line = bare("user", "list", expect=1).stderr
    assert line == f"Error: {VARIABLE} and {VARIABLE}_FILE are both set. Unset one of them.\n"


def test_an_empty_credential_is_named(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "database_url").touch()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    line = bare("user", "list", expect=1).stderr
    assert line == f"Error: The credential {tmp_path}/database_url is empty. Write the value into it.\n"


def test_the_secrets_of_the_demo_come_from_files(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, credentials = tokens.generate(), tmp_path / "credentials"
    credentials.mkdir()
    (tmp_path / "token").write_text(f"{token}\n")
    monkeypatch.setenv("MUSICSVC_DEMO_TOKEN_FILE", str(tmp_path / "token"))
    (credentials / "demo_password").write_text("three romances\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    line = bare("user", "list", expect=1).stderr
    assert line.startswith("Error: MUSICSVC_DEMO_TOKEN_FILE: only for musicsvc serve --demo. ")
    with Program(tmp_path, "serve", "--demo", "--port", "0") as program:
        assert program.root
        assert f"Bearer {token}" in program.out
        assert "with the same password: three romances\n" in program.err
    (credentials / "demo_password").write_text("short")
    line = bare("serve", "--demo", "--port", "0", expect=1).stderr
    assert line.startswith(f"Error: {credentials}/demo_password: The password must have 8 ")


@pytest.mark.parametrize("password", ["three", "a:b", "a/b", "a@b", "a?b", "p@s/s?w:d"])
def test_no_password_in_a_url_is_shown(password: str) -> None:
    assert without_password(f"postgresql://ann:{password}@host:5432/music") == "postgresql://ann:***@host:5432/music"
    plain = "postgresql://ann@host:5432/music?application_name=a@b"
    assert without_password(plain) == plain
    assert without_password(f"{plain}&password=x&sslpassword=y") == f"{plain}&password=***&sslpassword=***"


def test_the_address_of_a_read_replica_is_a_secret_too(
    bare: Run, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_READ_URL_FILE", str(secret))
    done = bare("config", "show", "--json")
    (row,) = (row for row in json.loads(done.stdout) if row["name"] == "database_read_url")
    assert (row["value"], row["from"]) == (SHOWN, f"MUSICSVC_DATABASE_READ_URL_FILE ({secret})")
    assert done.stderr == ""

    secret.write_text("sqlite:////a")
    line = bare("user", "list", expect=1).stderr
    source = f"MUSICSVC_DATABASE_READ_URL_FILE ({secret})"
    assert line == f"Error: Setting database_read_url ({source}): must start with postgresql://.\n"
