"""Behaviour on a terminal: hidden prompts, the hint beside a new token, bold headings."""

import os
import pty
import select
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from musicsvc.store.accounts import passwords, tokens, users
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Run
from tests.support import preloaded
from tests.support.command import run_in_process

pytestmark = pytest.mark.unbuffered

END = "\0"
EMAIL = "ada@example.test"


class Terminal:
    """A pseudo-terminal for the standard streams of commands."""

    def __init__(self) -> None:
        self._ours, self._theirs = pty.openpty()

    def show(self, *arguments: str, expect: int = 0) -> str:
        """Run a command in this process, with stdout and stderr here, and return all that it printed."""
        with (
            open(os.dup(self._theirs), "w", encoding="utf-8") as screen,  # noqa: PTH123 - a descriptor has no path
            ThreadPoolExecutor(1) as threads,
        ):
            reading = threads.submit(self._read_to, END)  # the terminal holds few characters that nobody has read
            done = run_in_process(arguments, output=screen, errors=screen)
            screen.write(END)
            screen.flush()
            shown = reading.result().removesuffix(END)
        assert done.returncode == expect, shown
        return shown.replace("\r\n", "\n")

    def run(self, *arguments: str, answers: Mapping[str, str], expect: int = 0) -> str:
        """Run a command in a process of its own, answer its prompts, and return all that it printed."""
        screen = self._theirs
        program = preloaded.start(arguments, screen, screen, screen)
        try:
            shown = ""
            for prompt, answer in answers.items():
                shown += self._read_to(prompt)
                os.write(self._ours, answer.encode())
            deadline = time.monotonic() + 30
            while program.poll() is None and time.monotonic() < deadline:
                shown += self._read() if self._has_more(0.02) else ""
            while self._has_more(0):
                shown += self._read()
        finally:
            program.kill()  # if it has not ended
        assert program.wait() == expect, shown
        return shown.replace("\r\n", "\n")

    def _has_more(self, seconds: float) -> bool:
        return bool(select.select([self._ours], [], [], seconds)[0])

    def _read_to(self, end: str) -> str:
        shown = ""
        while not shown.endswith(end):
            shown += self._read()
        return shown

    def _read(self) -> str:
        assert self._has_more(30), "nothing came"
        return os.read(self._ours, 65_536).decode(errors="replace")

    def close(self) -> None:
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Create an account and a terminal."""
    run("user", "create", EMAIL)
    monkeypatch.setenv("TERM", "xterm")
    opened = Terminal()
    yield opened
    opened.close()


def test_a_password_is_asked_for_twice(terminal: Terminal, store: Store) -> None:
    answers = {"New password: ": "a good phrase\n", "Repeat for confirmation: ": "a good phrase\n"}
    assert "good" not in terminal.run("user", "password", EMAIL, answers=answers)
    hashed = store.read(lambda: users.by_email(EMAIL).password_hash).result()
    assert hashed
    assert passwords.verify(hashed, "a good phrase")


def test_a_token_is_printed_on_a_separate_line_below_a_hint(terminal: Terminal, run: Run) -> None:
    run("access", "grant", EMAIL)
    hint, value, rest = terminal.show("token", "create", EMAIL, "--name", "laptop").split("\n")
    assert "not shown again" in hint
    assert tokens.well_formed(value)
    assert rest == ""


def test_a_password_link_is_printed_on_a_separate_line_below_a_hint(terminal: Terminal) -> None:
    _, hint, link, rest = terminal.show("user", "create", "bob@label.test").split("\n")
    assert hint == (
        "Give this link to bob@label.test. It sets the password once, within 24 hours, and is not shown again."
        " No running server was found: the link has the address of the settings, http://127.0.0.1:8080."
    )
    assert "/password/" in link
    assert rest == ""


def test_a_token_is_asked_for_without_showing_it(terminal: Terminal, run: Run) -> None:
    run("access", "grant", EMAIL)
    value = run("token", "create", EMAIL, "--name", "laptop").stdout
    shown = terminal.run("token", "inspect", answers={"Token: ": value})
    assert value.strip() not in shown
    assert "laptop" in shown


def test_headings_are_bold_unless_colour_is_not_wanted(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1m" in terminal.show("user", "list")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in terminal.show("user", "list")


@pytest.mark.parametrize(("form", "begins"), [("csv", '"track_id",'), ("json", '{"success":true')])
def test_an_export_of_text_is_shown_on_a_terminal(terminal: Terminal, form: str, begins: str) -> None:
    shown = terminal.show("export", "tracks", "--format", form)
    assert shown.startswith(begins)
    assert "\x1b" not in shown


@pytest.mark.parametrize("form", ["Parquet", "PDF"])
def test_an_export_that_is_not_text_is_kept_from_a_terminal(terminal: Terminal, form: str) -> None:
    shown = " ".join(terminal.show("export", "tracks", "--format", form.lower(), expect=2).split())
    assert f"Invalid value for --output: {form} cannot be shown in a terminal. Name an output file." in shown
