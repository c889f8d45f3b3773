"""The commands of docs/recover.md and docs/upgrade.md, run on SQLite."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Json, Run
from tests.support.page_commands import commands

pytestmark = pytest.mark.only_on("sqlite")
Perform = Callable[..., list[str]]


@pytest.fixture
def perform(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Perform:
    """Return a function that runs the commands below a heading, which must succeed, and returns what they print."""
    monkeypatch.chdir(tmp_path)

    def perform(heading: str = "", page: str = "recover.md") -> list[str]:
        lines = [shlex.split(line) for line in commands(page, heading)]
        assert {program for program, *_ in lines} == {"musicsvc"}
        return [run(*arguments).stdout for _, *arguments in lines]

    return perform


def test_doctor_and_the_check_find_no_problem_in_a_good_database(perform: Perform) -> None:
    found, checked = perform()

    assert "problem " not in found
    assert checked == ""


def test_a_backup_is_restored_as_the_page_says(perform: Perform, run: Run, ask: Json, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    run("user", "create", "eve@label.test")
    run("db", "backup", "backups/musicsvc-20260131T120000Z.db")
    run("user", "create", "ann@label.test")

    perform("Restore a backup")

    assert [user["email"] for user in ask("user", "list")] == ["eve@label.test"]


def test_another_machine_gets_the_data_from_a_backup(
    perform: Perform, run: Run, ask: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("user", "create", "eve@label.test")
    run("db", "backup", "musicsvc-20260131T120000Z.db")
    monkeypatch.delenv("MUSICSVC_DATABASE_URL")
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "other machine"))

    perform("Another machine")

    assert [user["email"] for user in ask("user", "list")] == ["eve@label.test"]


def test_an_administrator_who_forgot_the_password_gets_a_link(perform: Perform, run: Run, ask: Json) -> None:
    for email in ("ann@label.test", "eve@label.test"):
        run("user", "create", email)

    link, _ = perform("A forgotten password")

    assert "/password/" in link
    assert ask("user", "show", "eve@label.test")["admin"] is True


def test_a_leaked_token_is_found_and_revoked(perform: Perform, run: Run, ask: Json) -> None:
    run("user", "create", "ann@label.test")
    run("access", "grant", "ann@label.test")
    run("token", "create", "ann@label.test", "--name", "laptop")

    perform("A leaked token")

    (token,) = ask("token", "list")
    assert token["revoked_reason"] == "published by mistake"


def test_an_upgrade_has_nothing_to_do_and_a_restored_backup_is_the_way_back(
    perform: Perform, run: Run, ask: Json, tmp_path: Path
) -> None:
    (tmp_path / "backups").mkdir()
    run("user", "create", "eve@label.test")
    run("db", "backup", "backups/musicsvc-before-0002_labels-20260131T120000Z.db")
    run("user", "create", "ann@label.test")

    assert perform("Rehearse", "upgrade.md") == [""]
    assert perform("One machine", "upgrade.md") == [""]
    perform("Go back to the version before", "upgrade.md")

    assert [user["email"] for user in ask("user", "list")] == ["eve@label.test"]
