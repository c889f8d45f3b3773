"""A restore replaces the database atomically and keeps the old one."""

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.accounts import password_links, users
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import restore as restore_backup
from musicsvc.store.models import PasswordLink, Session, Tag, User
from musicsvc.store.schema import history, schema
from musicsvc.store.security import sessions
from tests.store.backups.killed_restoring import NOW, contents, names
from tests.support import upgrades
from tests.support.backed_up import add, killed_beside_its_wal, restore
from tests.support.bounds import Bounds
from tests.support.damage import add_dangling_row, overwrite_middle_page

pytestmark = pytest.mark.only_on("sqlite")
ROOT = Path(__file__).resolve().parents[3]


def test_a_restore_replaces_the_database_and_keeps_the_old_one(path: Path, backup: Path) -> None:
    before = backup.read_bytes()
    done = restore(backup, path)
    assert done.kept == path.with_name("musicsvc-before-restore-20260301T120000Z.db")
    assert (names(path), names(done.kept)) == ({"new"}, {"old"})
    with_event = {name: done.facts.counts[name] + 1 for name in ("security_event", "sqlite_sequence")}
    restored = replace(done.facts, counts={**done.facts.counts, **with_event})
    assert restored == verify.check(done.kept.with_name(path.name))
    assert backup.read_bytes() == before
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert set(modes) == {path.name, done.kept.name, f"{path.name}.in-use", f"{path.name}.migrating"}
    add(f"sqlite:///{path}", "later")
    assert names(path) == {"new", "later"}


def test_sessions_and_links_of_a_backup_do_not_come_back(path: Path, tmp_path: Path) -> None:
    def sign_in() -> None:
        user = users.create("ann@label.test", now=NOW)
        sessions.create(user, address="::1", agent="", now=NOW)
        password_links.create(user, now=NOW)

    url = f"sqlite:///{path}"
    with opening.connect(url) as store:
        store.write(sign_in).result()
    backup = create.create(path, tmp_path / "signed-in.db").file
    restore(backup, path)
    with opening.connect(url) as store:
        counts = store.read(lambda: (User.select().count(), Session.select().count(), PasswordLink.select().count()))
        assert counts.result() == (1, 0, 0)


@pytest.mark.slow
def test_the_replaced_database_can_be_restored(path: Path, backup: Path) -> None:
    kept = restore(backup, path).kept
    assert kept is not None
    assert restore(kept, path).kept == path.with_name("musicsvc-before-restore-20260301T120000Z-2.db")
    assert names(path) == {"old"}


def test_a_leftover_wal_is_kept_with_the_old_database(path: Path, backup: Path, tmp_path: Path) -> None:
    killed_beside_its_wal(path, tmp_path / "killed")
    place = tmp_path / "killed" / "musicsvc.db"
    kept = restore(backup, place).kept
    assert kept is not None
    assert (names(place), names(kept)) == ({"new"}, {"old", "late"})


def test_a_damaged_database_is_kept_with_its_wal(path: Path, backup: Path, tmp_path: Path) -> None:
    killed_beside_its_wal(path, tmp_path / "killed")
    place = tmp_path / "killed" / "musicsvc.db"
    wal = place.with_name("musicsvc.db-wal").read_bytes()
    place.write_bytes(b"noise " * 10_000)
    kept = restore_backup.restore(backup, place, now=NOW, keep=False).kept
    assert names(place) == {"new"}
    assert kept is not None
    assert kept.read_bytes() == b"noise " * 10_000
    assert kept.with_name(f"{kept.name}-wal").read_bytes() == wal


def test_the_old_database_is_not_kept_without_keep(path: Path, backup: Path) -> None:
    assert restore_backup.restore(backup, path, now=NOW, keep=False).kept is None
    assert names(path) == {"new"}
    assert not list(path.parent.glob("*before*"))


def test_a_missing_database_is_restored(backup: Path, tmp_path: Path) -> None:
    place = tmp_path / "fresh" / "data" / "musicsvc.db"
    assert restore(backup, place).kept is None
    assert names(place) == {"new"}
    assert [stat.S_IMODE(file.stat().st_mode) for file in (place, place.parent)] == [0o600, 0o700]


def test_a_symbolic_link_to_the_database_stays(path: Path, backup: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    restore(backup, link)
    assert link.is_symlink()
    assert names(path) == {"new"}


@pytest.mark.slow
def test_a_manual_copy_with_its_wal_is_restored_completely(path: Path, backup: Path, tmp_path: Path) -> None:
    killed_beside_its_wal(path, tmp_path / "by-hand")
    before = contents(tmp_path / "by-hand")
    restore(backup, path)
    restore(tmp_path / "by-hand" / "musicsvc.db", path)
    assert names(path) == {"old", "late"}
    assert contents(tmp_path / "by-hand") == before


def _foreign(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("PRAGMA application_id = 1")
    connection.close()


def _newer(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO schema_migration (name, oldest_program) VALUES ('9999_later', '9.9.0')")
    connection.close()


def _older(file: Path) -> None:
    upgrades.make_older(f"sqlite:///{file}")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda file: file.write_bytes(b""), "is empty"),
        (lambda file: file.write_bytes(file.read_bytes()[:-4096]), "is cut short"),
        (lambda file: file.write_bytes(b"a note\n" * 1000), "is not a SQLite database"),
        (overwrite_middle_page, "is damaged"),
        (add_dangling_row, "is damaged: a row refers to a missing row"),
        (_foreign, "belongs to another program"),
        (_newer, r"needs musicsvc 9\.9\.0 or newer, and this is .*: install that version"),
        (_older, r"was written before version 0\.1\.0 and .*: move it away, .* import your files again\.$"),
        (lambda file: file.unlink(), "There is no file"),
    ],
    ids=["empty", "short", "text", "middle", "dangling", "foreign", "newer", "older", "missing"],
)
def test_an_invalid_backup_changes_nothing(
    path: Path, backup: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(backup)
    before = path.read_bytes()
    with pytest.raises(Failure, match=says) as refusal:
        restore(backup, path)
    message = refusal.value.message
    assert str(backup) in message
    assert ".restoring" not in message
    assert "\n" not in message
    assert {name: part for name, part in contents(path.parent).items() if part} == {path.name: before}


def test_the_database_cannot_be_restored_from_itself(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    for file, place in ((path, path), (link, path), (path, link)):
        with pytest.raises(Failure, match="is the database itself"):
            restore(file, place)
    assert names(path) == {"old"}


def test_a_database_of_another_program_is_not_replaced(path: Path, backup: Path) -> None:
    _foreign(path)
    before = path.read_bytes()
    with pytest.raises(Failure, match="belongs to another program"):
        restore(backup, path)
    assert path.read_bytes() == before


def test_an_older_backup_is_restored_and_then_upgraded(path: Path, backup: Path, tmp_path: Path) -> None:
    folder = upgrades.make_next(tmp_path / "next")
    assert history.missing(restore(backup, path).facts.migrations, folder) == [*upgrades.NEXT]
    with pytest.raises(Failure, match=r"Run: musicsvc db upgrade"):
        opening.connect(f"sqlite:///{path}", folder)
    schema.upgrade(f"sqlite:///{path}", folder=folder)
    opening.connect(f"sqlite:///{path}", folder).close()


def test_a_database_that_left_wal_mode_opens_as_before(path: Path) -> None:
    restore_backup._leave_wal_mode(path)
    with opening.connect(f"sqlite:///{path}") as store:
        assert store.read(lambda: [tag.name for tag in Tag.select()]).result() == ["old"]
        store.write(lambda: Tag.create(name="next")).result()
        assert path.with_name(f"{path.name}-wal").exists()
        assert store.read(lambda: [tag.name for tag in Tag.select()]).result() == ["old", "next"]
    assert names(path) == {"old", "next"}


def test_progress_reaches_the_total_and_never_exceeds_it(path: Path, backup: Path, bounds: Bounds) -> None:
    bounds(verify_steps=100)
    steps: list[tuple[float, float]] = []
    restore_backup.restore(backup, path, now=NOW, on_progress=lambda done, total: steps.append((done, total)))
    size = backup.stat().st_size
    assert (size, size) in steps
    assert all(0 <= done <= total for done, total in steps)
    copied = steps.index((size, size))
    assert set(steps[copied + 1 :]) == {(1, 1)}  # while the copy is verified
