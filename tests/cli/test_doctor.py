"""`musicsvc doctor`: every fault is found and shown with a hint, and no false problems are."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import Clock
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import files
from tests.cli.conftest import Run
from tests.support.command import run_in_process
from tests.support.damage import overwrite_middle_page
from tests.support.program import Program, until

sqlite = pytest.mark.only_on("sqlite")
Doctor = Callable[[], tuple[int, dict[str, list[dict[str, str]]]]]


@pytest.fixture
def doctor(run: Run) -> Doctor:  # noqa: ARG001 - it names the database
    """Return a function that runs the command and returns its exit code and its findings by check."""

    def ask() -> tuple[int, dict[str, list[dict[str, str]]]]:
        done = run_in_process(["doctor", "--json"])
        assert "Traceback" not in done.stderr
        answer: Any = json.loads(done.stdout)
        found: dict[str, list[dict[str, str]]] = {}
        for finding in answer["findings"]:
            assert (finding["level"] == "ok") == (finding["hint"] == ""), finding
            assert finding["way_out"] == finding["hint"]  # its former name, for scripts
            assert "\n" not in finding["finding"]
            found.setdefault(finding["check"], []).append(finding)
        assert answer["ok"] == (done.returncode == 0)
        return done.returncode, found

    return ask


def levels(found: dict[str, list[dict[str, str]]], but: Collection[str] = ()) -> set[str]:
    return {finding["level"] for check, findings in found.items() if check not in but for finding in findings}


@pytest.mark.slow
@sqlite
def test_an_installation_without_faults_has_no_problems_also_while_a_server_runs(
    doctor: Doctor, file: Path, tmp_path: Path
) -> None:
    folder = file.parent / "backups"
    folder.mkdir(mode=0o700)
    create.create(file, backup_folder.new_name(folder, Clock().now()))
    with Program(tmp_path, "serve", "--port", "0") as program:
        assert program.root
        until(lambda: files.check_reserved_space(file)[0].level == "ok")
        code, found = doctor()
    assert (code, levels(found, but={"disk", "descriptors"})) == (0, {"ok"})
    assert list(found) == [
        *(
            "clock",
            "SQLite",
            "pragmas",
            "integrity",
            "schema",
            "counts",
            "activity log",
            "permissions",
            "disk",
            "ballast",
        ),
        *("backups", "leftovers", "TLS", "settings", "descriptors"),
    ]


@pytest.mark.only_on("postgres")
def test_postgres_is_checked_by_its_readable_settings(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = doctor()
    assert set(found) >= {"clock", "pragmas", "schema", "TLS", "settings", "descriptors"}
    assert levels({name: found[name] for name in ("clock", "schema", "settings")}) == {"ok"}
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1:1/music")
    code, found = doctor()
    assert (code, found["database"][0]["level"]) == (1, "problem")
    assert "s3cret" not in str(found)


@sqlite
def test_the_other_checks_run_when_the_database_is_damaged(doctor: Doctor, file: Path) -> None:
    overwrite_middle_page(file)
    (file.parent / "backups").write_text("in the way")
    code, found = doctor()
    assert (code, found["database"][0]["level"], found["backups"][0]["level"]) == (1, "problem", "problem")
    assert len(found) > 8


@sqlite
def test_only_damaged_backups_are_a_problem(doctor: Doctor, file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir(mode=0o700)
    assert doctor()[0] == 0
    made = create.create(file, backup_folder.new_name(folder, Clock().now())).file
    overwrite_middle_page(made)  # the part that only opening it shows
    code, found = doctor()
    assert (code, [finding["level"] for finding in found["backups"]]) == (1, ["warning", "problem"])
    assert found["backups"][1]["finding"] == f"There is no undamaged backup in {folder}."


def test_findings_in_a_pipe_are_wrapped_between_words(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it names the database
    monkeypatch.setenv("MUSICSVC_LIMITS__ENABLED", "false")
    shown = []
    for columns in ("120", "1000"):
        monkeypatch.setenv("COLUMNS", columns)
        shown.append(run_in_process(["doctor"]).stdout.splitlines())
    narrow, wide = shown
    assert len(narrow) > len(wide)
    assert max(map(len, wide)) > 120
    for words in ("Rate limits and abuse handling are off (limits.enabled).", "Turn them on."):
        assert any(words in line for line in wide)
        assert set(words.split()) <= {word for line in narrow for word in line.split()}
