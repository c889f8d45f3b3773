"""`serve --demo`: its line on stdout, and a clock that can be moved."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.accounts import tokens
from tests.support.command import run_in_process
from tests.support.program import Program, until

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for the demo's files; settings for another store or several workers are set but not used."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "sqlite:////nowhere/musicsvc.db")
    monkeypatch.setenv("MUSICSVC_SERVER__WORKERS", "2")
    return tmp_path


def line_of(program: Program) -> str:
    """Return the one line on stdout."""
    until(lambda: program.out.endswith("\n") or program.process.poll() is not None)
    assert program.out.count("\n") == 1, program.err
    return program.out.rstrip("\n")


def ask(line: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request with token and address of the line; return status and JSON."""
    curl, header, authorization, url = shlex.split(line)
    assert (curl, header) == ("curl", "-H")
    sent = urllib.request.Request(  # noqa: S310 - an address of the test - http, to this machine
        f"{url.removesuffix('albums')}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": authorization.removeprefix("Authorization: "), "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(sent) as answer:  # noqa: S310 - an address of the test
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def sign_in(root: str, email: str, password: str) -> str:
    """Sign in on the page, and return the page that is shown then."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    browser.addheaders = [("Accept", "text/html"), ("Origin", root)]
    with browser.open(f"{root}/sign-in") as answer:
        token = re.findall(r'name="form_token" value="(\w+)"', answer.read().decode())[0]
    form = urllib.parse.urlencode({"email": email, "password": password, "form_token": token})
    with browser.open(f"{root}/sign-in", form.encode()) as answer:
        return str(answer.read().decode())


def test_the_line_on_stdout_works_as_it_stands(folder: Path) -> None:
    (folder / "musicsvc-scratch-killed").mkdir()  # left by a demo that was killed
    with Program(folder, "serve", "--demo", "--port", "0") as program:
        line = line_of(program)
        assert re.fullmatch(r'curl -H "Authorization: Bearer msvc_\w+" http://127\.0\.0\.1:\d+/api/v1/albums', line)
        if shutil.which("curl"):
            done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
            assert json.loads(done.stdout)["status"] == "success"
        assert ask(line, "artists", {"name": "Barbara Strozzi"})[0] == 201
        registered = {"email": "me@example.test", "password": "long enough", "token_name": "first"}
        status, answer = ask(line, "auth/register", registered)
        assert status == 200
        own = line.replace(re.findall(r"msvc_\w+", line)[0], answer["user"]["access_token"])
        assert ask(own, "artists", {"name": "Isabella Leonarda"})[0] == 201  # registering gives access here
        root = re.findall(r"http://[^/]+", line)[0]
        assert f"\nOpen {root} in a browser. API documentation: {root}/docs\n" in program.err
        password = re.findall(r"\nSign in as demo@musicsvc.test with the password (\S{16})\n", program.err)[0]
        assert len(list(folder.glob("musicsvc-scratch-*"))) == 1
        assert "Sign out" in sign_in(root, "demo@musicsvc.test", password)
        administrator = f"\nSign in as the administrator admin@musicsvc.test with the same password: {password}\n"
        assert administrator in program.err
        assert 'href="/admin"' in sign_in(root, "admin@musicsvc.test", password)
        assert program.end(signal.SIGINT) == 0
        assert program.out == f"{line}\n"
        token = re.findall(r"msvc_\w+", line)[0]
        assert re.search(rf"^Token of \S+@\S+: {token}$", program.err, re.MULTILINE)
    assert not list(folder.glob("musicsvc-scratch-*"))


@pytest.mark.slow
def test_variables_fix_the_token_and_the_password_of_a_demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens.generate()
    monkeypatch.setenv("MUSICSVC_DEMO_TOKEN", token)
    monkeypatch.setenv("MUSICSVC_DEMO_PASSWORD", "three romances")
    with Program(folder, "serve", "--demo", "--port", "0") as program:
        line = line_of(program)
        assert line.startswith(f'curl -H "Authorization: Bearer {token}" ')
        assert ask(line, "albums")[0] == 200
        root = re.findall(r"http://[^/]+", line)[0]
        assert "Sign out" in sign_in(root, "demo@musicsvc.test", "three romances")
        assert "no such setting" not in program.err
        assert program.end(signal.SIGINT) == 0


@pytest.mark.slow
def test_the_addresses_of_a_demo_have_the_base_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__BASE_PATH", "/music")
    with Program(folder, "serve", "--demo", "--port", "0") as program:
        line = line_of(program)
        root = f"{program.root}/music"
        assert line.endswith(f" {root}/api/v1/albums")
        assert ask(line, "albums")[0] == 200
        assert f"\nOpen {root} in a browser. API documentation: {root}/docs\n" in program.err


BROKEN = "msvc_" + "a" * 46  # with a wrong checksum


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "value", "command", "message"),
    [
        ("TOKEN", "msvc_short", "serve --demo", "is not a valid token: its prefix, length or checksum is wrong."),
        ("TOKEN", BROKEN, "serve --demo", "is not a valid token: its prefix, length or checksum is wrong."),
        ("PASSWORD", "short", "serve --demo", ": The password must have 8 to 128 characters."),
        ("PASSWORD", "Admin@musicsvc.test", "serve --demo", ": The password must not be the e-mail."),
        ("PASSWORD", "three\tromances", "serve --demo", ": The password must not contain control characters."),
        ("PASSWORD", "three romances", "serve", ": only for musicsvc serve --demo. Unset it for other commands."),
        ("TOKEN", BROKEN, "user list", ": only for musicsvc serve --demo. Unset it for other commands."),
    ],
)
def test_other_values_and_other_commands_refuse_the_variables_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, command: str, message: str
) -> None:
    monkeypatch.setenv(f"MUSICSVC_DEMO_{name}", value)
    done = run_in_process(command.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: MUSICSVC_DEMO_{name}")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert value not in done.stderr


@pytest.mark.slow
def test_the_clock_starts_where_it_is_told_and_a_token_is_seen_to_expire(folder: Path) -> None:
    in_three_seconds = str(90 * 86_400 // 3)
    with Program(
        folder, "serve", "--demo", "--port", "0", "--now", "2026-01-01", "--speed", in_three_seconds
    ) as program:
        line = line_of(program)
        status, answer = ask(line, "tracks/1")
        assert (status, answer["track"]["created_at"]) == (200, "2026-01-01T00:00:00.000000Z")
        _, made = ask(line, "artists", {"name": "Barbara Strozzi"})
        assert "2026-01-01T" < made["artist"]["created_at"] < "2026-04-01T"
        until(lambda: ask(line, "albums") == (401, {"message": "Unauthenticated."}))
        program.process.terminate()
        program.process.terminate()
    assert not list(folder.glob("musicsvc-scratch-*"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "options",
    [
        ["--now", "2026-01-01"],
        ["--speed", "2"],
        ["--world", "edge"],
        ["--demo", "--now", "yesterday"],
        ["--demo", "--now", "1969-12-31"],
        ["--demo", "--speed", "-1"],
        ["--demo", "--workers", "2"],
        ["--demo", "--world", "vast"],
    ],
)
def test_the_options_of_a_demo_need_a_demo_and_valid_values(options: list[str]) -> None:
    done = run_in_process(["serve", *options])
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage:" in done.stderr
