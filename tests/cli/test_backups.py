"""`musicsvc db backup`, `musicsvc db restore`, and the backup before an upgrade."""

import json
import os
import re
import shlex
import signal
import stat
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from musicsvc import descriptors
from musicsvc.clock import DAY, Clock
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups import verify
from musicsvc.store.backups.regained_rights import RegainedRights
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.url import describe
from musicsvc.store.models import ReportLink, User
from musicsvc.store.people import deletion
from musicsvc.store.plays.periods import between
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.plays.subjects import Subject
from musicsvc.store.schema import history
from tests.cli.conftest import Json, Run
from tests.cli.test_terminal import Terminal
from tests.support import old_databases, program, upgrades
from tests.support.command import run_in_process
from tests.support.program import Program

sqlite = pytest.mark.only_on("sqlite")
UID = 12345  # the user of the service
EMAIL = "ann@label.test"


@pytest.fixture
def served(run: Run, tmp_path: Path) -> Iterator[Program]:  # noqa: ARG001 - it names the database
    """Run a server on the database of `run`."""
    with (
        Program(tmp_path, "serve", "--port", "0") as program,
        urlopen(f"{program.root}/healthz"),  # noqa: S310 - answered by a worker, which has opened the database
    ):
        yield program


def _add(file: Path, email: str = EMAIL) -> None:
    with opening.connect(f"sqlite:///{file}") as store:
        store.write(lambda: users.create(email, now=0)).result()


def _emails(file: Path) -> list[str]:
    with opening.connect(f"sqlite:///{file}") as store:
        return store.read(lambda: [user.email for user in User.select().order_by(User.id)]).result()


@sqlite
def test_a_backup_is_written_to_the_backup_folder(ask: Json, file: Path) -> None:
    made = ask("db", "backup")
    place = Path(made["file"])
    assert place.parent == file.parent / "backups"
    assert re.fullmatch(r"musicsvc-[0-9]{8}T[0-9]{6}Z\.db", place.name)
    assert (made["bytes"], made["schema"]) == (place.stat().st_size, history.available()[-1])
    assert made["rows"] == verify.check(place).rows
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, place.parent)] == [0o600, 0o700]


@sqlite
def test_a_backup_is_written_to_the_given_place(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("db", "backup", str(tmp_path / "one.db")).stderr
    assert re.fullmatch(rf"Backed up [0-9,]+ rows \([0-9.]+ MB\) to {tmp_path}/one\.db, in [0-9.]+ s\.\n", said)
    monkeypatch.setenv("MUSICSVC_BACKUPS__FOLDER", str(tmp_path / "some" / "where"))
    assert run("-q", "db", "backup").stderr == ""
    assert len(backup_folder.entries(tmp_path / "some" / "where")) == 1
    assert "one.db exists" in run("db", "backup", str(tmp_path / "one.db"), expect=1).stderr


@sqlite
def test_a_backup_can_be_restored(run: Run, ask: Json, file: Path, tmp_path: Path) -> None:
    _add(file)
    run("db", "backup", str(tmp_path / "one.db"))
    _add(file, "ben@label.test")
    refused = run("db", "restore", str(tmp_path / "one.db"), expect=1).stderr
    assert f"replaces the database {file}. To confirm this without a terminal, add --yes" in refused
    assert len(_emails(file)) == 2
    done = ask("db", "restore", str(tmp_path / "one.db"), "--yes")
    assert (done["database"], done["current"], done["schema"]) == (str(file), True, history.available()[-1])
    assert _emails(file) == [EMAIL]
    assert set(done["valid_again"]) == {*RegainedRights.__slots__}
    assert not any(done["valid_again"].values())
    said = run("db", "restore", done["kept"], "--yes", "--no-keep").stderr
    assert "Repeat the revocations made since then" in said
    assert "is kept" not in said
    assert len(_emails(file)) == 2
    said = run("db", "restore", str(tmp_path / "one.db"), "--yes").stderr
    kept = re.search(r"^The replaced database is kept as (.+)$", said, re.MULTILINE)
    assert kept
    assert len(_emails(Path(kept[1]))) == 2


@sqlite
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_root_backs_up_and_restores_belongs_to_the_user_of_the_service(
    run: Run, file: Path, tmp_path: Path, elsewhere: bool
) -> None:
    backup = tmp_path / "mine.db"
    assert run("db", "backup", str(backup)).returncode == 0
    for each in (file.parent, *file.parent.iterdir()):
        os.chown(each, UID, UID)
    for each in file.parent.iterdir():  # as on a new machine
        each.unlink()
    assert run("init").returncode == 0
    if elsewhere:
        os.chown(tmp_path, UID + 1, UID + 1)
    assert run("db", "backup", *[str(tmp_path / "other.db")] * elsewhere).returncode == 0
    assert run("db", "restore", str(backup), "--yes").returncode == 0
    found = [*file.parent.rglob("*")]
    assert {(each.stat().st_uid, each.stat().st_gid) for each in found} == {(UID, UID)}
    assert (
        len({"backups", file.name, f"{file.name}.in-use", f"{file.name}.migrating"} & {each.name for each in found})
        == 4 - elsewhere
    )
    assert not elsewhere or (tmp_path / "other.db").stat().st_uid == 0


@sqlite
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_what_a_server_of_root_creates_belongs_to_the_user_of_the_service(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "1")
    assert run("init").returncode == 0
    for each in (file.parent, *file.parent.iterdir()):
        os.chown(each, UID, UID)
    with Program(tmp_path, "serve", "--port", "0") as server:
        assert urlopen(f"{server.root}/sign-in").status == 200  # noqa: S310 - counted
        program.until(lambda: "backed up" in server.err)
        descriptors.make_folder(file.parent / "uploads" / "7")
    assert {each.stat().st_uid for each in file.parent.rglob("*")} == {UID}


@sqlite
def test_a_restore_is_an_event_and_lists_share_links_that_work_again(
    run: Run, ask: Json, store_url: str, tmp_path: Path
) -> None:
    now = Clock().now()
    days = between(date(2026, 1, 5), date(2026, 1, 9), now)

    def share() -> None:
        users.create("ann@label.test", now=now)
        users.create("ben@label.test", now=now)
        for number, lifetime in enumerate((DAY, DAY, 2 * DAY, DAY, 0), 1):
            report_links.create([Subject(1, number)], days, user_id=1 + number % 2, now=now, lifetime=lifetime)

    def end(*links: int) -> None:
        for link in links:
            report_links.end(ReportLink.get_by_id(link), user_id=1, now=now)

    with opening.connect(store_url) as store:
        store.write(share).result()
        rows = ask("db", "backup", str(tmp_path / "one.db"))["rows"]
        store.write(lambda: end(2, 3, 5)).result()
    said = run("db", "restore", str(tmp_path / "one.db"), "--yes").stderr
    again = "These share links work again, although ended after the backup: 2 of ann@label.test, 3 of ben@label.test."
    assert f"{again}\nTheir owners can end them on the page /settings.\n" in said
    assert "Valid again" not in said
    event = ask("activity", "--kind", "events")[-1]
    expected = ("db.restored", "cli", f"{rows:,} rows from one.db")
    assert (event["kind"], event["actor"], event["reason"]) == expected


@sqlite
def test_a_restore_lists_deleted_accounts_and_erased_listeners_that_are_back(
    run: Run, store_url: str, tmp_path: Path
) -> None:
    now = Clock().now()

    def fill() -> None:
        for name in ("ann", "ben", "cleo"):
            users.create(f"{name}@label.test", now=now)
        listeners.ensure([*map(listeners.opaque_key, ("fan-7", "fan-8", "fan-9")), listeners.account_key(2)])

    with opening.connect(store_url) as store:
        store.write(fill).result()
        run("db", "backup", str(tmp_path / "one.db"))
        for account in (2, 3):
            store.write(partial(deletion.delete, account, now=now)).result()
        store.write(partial(users.create, "dan@label.test", now=now)).result()
        store.write(partial(deletion.erase_listener, "fan-8", now=now)).result()
    said = run("db", "restore", str(tmp_path / "one.db"), "--yes").stderr
    assert "These accounts were deleted after the backup: ben@label.test, cleo@label.test.\n" in said
    assert "These listeners were erased after the backup: fan-8.\n" in said
    with opening.connect(store_url) as store:
        for account in (2, 3):
            store.write(partial(deletion.delete, account, now=now)).result()
        store.write(partial(deletion.erase_listener, "fan-8", now=now)).result()


@pytest.mark.slow
@sqlite
def test_replacing_a_database_needs_confirmation(run: Run, file: Path, tmp_path: Path) -> None:
    run("db", "backup", str(tmp_path / "one.db"))
    _add(file)
    terminal = Terminal()
    try:
        shown = terminal.run("db", "restore", str(tmp_path / "one.db"), answers={"[y/N]: ": "y\n"})
    finally:
        terminal.close()
    assert f"Replace the database {file} with" in shown
    assert _emails(file) == []


@sqlite
def test_while_a_server_runs_a_backup_works_but_restore_and_upgrade_do_not(
    served: Program, run: Run, file: Path, tmp_path: Path
) -> None:
    run("db", "backup", str(tmp_path / "one.db"))
    assert file_locks.in_use(file) in run("db", "restore", str(tmp_path / "one.db"), "--yes", expect=1).stderr
    assert "The schema is up to date." in run("db", "upgrade").stderr
    assert served.end(signal.SIGTERM) == 0
    run("db", "restore", str(tmp_path / "one.db"), "--yes")


@sqlite
def test_a_lost_or_damaged_database_cannot_be_backed_up_but_restored(run: Run, file: Path, tmp_path: Path) -> None:
    _add(file)
    run("db", "backup", str(tmp_path / "one.db"))
    file.write_bytes(b"")
    assert "is empty (0 bytes)" in run("db", "backup", expect=1).stderr
    file.unlink()
    assert "There is no database" in run("db", "backup", expect=1).stderr
    run("db", "restore", str(tmp_path / "one.db"))
    assert _emails(file) == [EMAIL]


Upgraded = Callable[..., Any]


@pytest.fixture
def next_version(run: Run, tmp_path: Path) -> Upgraded:  # noqa: ARG001 - it names the database
    """Return a function that runs a command of a made next version of the program and returns its JSON value."""
    folder = upgrades.make_next(tmp_path / "next")

    def run_next(*arguments: str) -> Any:
        done = run_in_process([*arguments, "--json"], migrations=folder)
        assert done.returncode == 0, done
        return {**json.loads(done.stdout), "stderr": done.stderr}

    return run_next


@pytest.fixture
def outdated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a database of the first version, with rows."""
    file = tmp_path / "old" / "musicsvc.db"
    old_databases.make(file)
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", f"sqlite:///{file}")
    return file


@sqlite
@pytest.mark.parametrize("command", [("db", "upgrade"), ("init",)])
def test_an_upgrade_makes_a_backup_first(next_version: Upgraded, outdated: Path, command: tuple[str, ...]) -> None:
    columns = old_databases.columns(outdated)
    before = old_databases.rows(outdated, columns)
    done = next_version(*command)
    (entry,) = backup_folder.entries(outdated.parent / "backups")
    assert (done["migrations"], done["backup"]) == ([*upgrades.NEXT], str(entry.file))
    assert str(entry.file) in done["stderr"]
    assert entry.kind == "before-9001_moods"
    assert old_databases.rows(entry.file, columns) == before
    assert "mood" in old_databases.columns(outdated)
    again = next_version(*command)
    assert (again["migrations"], again["backup"]) == ([], None)
    if command == ("init",):
        return
    restored = next_version("db", "restore", str(entry.file), "--yes")
    assert f"Its schema is older ({history.available()[-1]}). Run: musicsvc db upgrade" in restored["stderr"]
    assert not restored["current"]
    assert next_version("db", "upgrade", "--no-backup")["backup"] is None
    after = old_databases.rows(outdated, columns)
    for table in ("security_event", "change_epoch"):  # the restore
        assert after.pop(table) != before.pop(table)
    assert after == before


@sqlite
def test_without_a_backup_nothing_is_migrated_unless_no_backup_is_given(
    run: Run, tmp_path: Path, next_version: Upgraded, outdated: Path
) -> None:
    (outdated.parent / "backups").symlink_to(tmp_path / "unmounted")
    refused = run_in_process(["db", "upgrade"], migrations=tmp_path / "next")
    assert refused.returncode == 1
    assert f"backups cannot be created: it is a link to {tmp_path / 'unmounted'}, which is missing." in refused.stderr
    assert refused.stderr.endswith("To upgrade without a backup, run: musicsvc db upgrade --no-backup\n")
    assert json.loads(run("db", "check", "--json").stdout) == {"ok": True, "problems": []}
    assert next_version("db", "upgrade", "--no-backup")["stderr"].endswith(
        "Applied: 9001_moods, 9002_moods_of_albums.\n"
    )
    assert "mood" in old_databases.columns(outdated)


@pytest.mark.parametrize(
    "command",
    [
        "init",
        "db upgrade",
        "db check",
        pytest.param("db backup", marks=sqlite),
        "user list",
        "activity",
        "serve --port 0",
    ],
)
def test_a_database_of_before_the_first_version_is_refused_by_every_command(
    run: Run, store_url: str, command: str
) -> None:
    upgrades.make_older(store_url)
    done = program.run(*command.split()) if command.startswith("serve") else run(*command.split(), expect=1)
    assert done.stderr == (
        f"Error: {describe(store_url)} was written before version 0.1.0 and cannot be upgraded:"
        " move it away, run musicsvc init, and import your files again.\n"
    )


@pytest.mark.only_on("postgres")
def test_postgres_databases_are_left_to_pg_dump(run: Run, tmp_path: Path) -> None:
    for line in (("db", "backup"), ("db", "restore", str(tmp_path), "--yes")):
        said = run(*line, expect=1).stderr
        assert "pg_dump" in said
        assert "pg_restore" in said


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("option", ["--backup", "--no-backup"])
def test_an_upgrade_of_a_postgres_database_says_that_it_made_no_backup(next_version: Upgraded, option: str) -> None:
    done = next_version("db", "upgrade", option)
    assert re.search("^No backup was made: .*pg_dump", done["stderr"])
    assert done["backup"] is None
    assert "backup" not in next_version("db", "upgrade")["stderr"]


# The commands of docs/backups.md, run in order.

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "backups.md").read_text("utf-8")


@pytest.mark.only_on("sqlite")
def test_the_commands_of_the_page_do_what_it_says(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other-disk").mkdir()
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.strip().splitlines()]
    for line in lines:
        if line[0] != "pytest":
            _run(line)
    folder = Path(store_url.removeprefix("sqlite:///")).parent
    kept = backup_folder.entries(folder)
    assert [len(backup_folder.entries(place)) for place in (folder / "backups", tmp_path / "other-disk")] == [1, 1]
    assert [entry.kind for entry in kept] == ["before-restore"]
    assert (tmp_path / "rehearsal" / "musicsvc.db").exists()
    for pattern in ("musicsvc-scheduled-", "musicsvc-before-restore-", "musicsvc-before-0002_labels-"):
        assert backup_folder.NAME.fullmatch(f"{pattern}20260131T120000Z.db")
        assert pattern in PAGE


def _run(line: list[str]) -> None:
    given = [part.partition("=") for part in line if re.match(r"[A-Z_]+=", part)]
    program, *arguments = line[len(given) :]
    assert program == "musicsvc"
    with pytest.MonkeyPatch.context() as environment:
        for name, _, value in given:
            environment.setenv(name, value)
        done = run_in_process(arguments)
    assert done.returncode == 0, (line, done.stderr)
