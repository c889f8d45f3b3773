"""`musicsvc db check --json`: the same JSON keys for every kind of problem."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Run
from tests.support import upgrades
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")


def _sql(file: Path, statement: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(statement)
    connection.close()


def _dangling(file: Path) -> None:
    _sql(file, "INSERT INTO track_tag VALUES (1, 1)")


def _newer(file: Path) -> None:
    _sql(file, "INSERT INTO schema_migration (name, oldest_program) VALUES ('9999_later', '9.9.0')")


def _older(file: Path) -> None:
    upgrades.make_older(f"sqlite:///{file}")


def _cut(file: Path) -> None:
    _sql(file, "CREATE TABLE filling AS SELECT zeroblob(100000)")  # so that the schema is not in the last page
    file.write_bytes(file.read_bytes()[:-1])


def _damaged(file: Path, page: int = 10) -> None:
    _sql(file, "CREATE TABLE filling AS SELECT zeroblob(9000000)")  # too large to be checked when it is opened
    with file.open("r+b") as disk:
        disk.seek(page * 4096)
        disk.write(b"\xff" * 3 * 4096)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_dangling, "foreign keys"),
        (_newer, "needs musicsvc 9.9.0"),
        (_older, "before version 0.1.0"),
        (_cut, "is cut short"),
        (_damaged, "the database is damaged. Restore a backup"),
        (partial(_damaged, page=1000), "invalid page number 4294967295"),
        (Path.unlink, "musicsvc init"),
    ],
    ids=["dangling", "newer", "older", "cut", "damaged", "damaged in a table", "missing"],
)
def test_every_problem_is_reported_as_one_json_value(
    bare: Run, tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    bare("init")
    spoil(tmp_path / "folder" / "musicsvc.db")

    done = run_in_process(["db", "check", "--json"])

    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done
    found = json.loads(done.stdout)
    assert found == {"ok": False, "problems": found["problems"]}
    assert message in found["problems"][0]
    assert "\n" not in found["problems"][0]
