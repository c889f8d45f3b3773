"""Deletion of scheduled backups: never another backup, never the last valid one."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc.clock import DAY, parse
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.backups.folder import SCHEDULED, new_name
from tests.support.damage import overwrite_middle_page
from tests.support.examples import examples

pytestmark = pytest.mark.only_on("sqlite")
NOW = parse("2026-03-01T12:00:00Z")


@pytest.fixture
def sound(store_url: str, tmp_path: Path) -> Path:
    return create.create(Path(store_url.removeprefix("sqlite:///")), tmp_path / "sound.db").file


@pytest.fixture
def damaged(sound: Path, tmp_path: Path) -> Path:
    """A backup that is damaged in its middle, which a glance does not tell."""
    damaged = tmp_path / "damaged.db"
    shutil.copy(sound, damaged)
    overwrite_middle_page(damaged)
    verify.check_header(damaged)
    return damaged


@dataclass(frozen=True)
class BackupCase:
    """Create a backup of this age in days."""

    days: int
    kind: str
    sound: bool


BACKUPS = st.builds(
    BackupCase, st.integers(-3, 20), st.sampled_from([SCHEDULED, SCHEDULED, "", "before-0002_x"]), st.booleans()
)


def _place(folder: Path, kinds: dict[bool, Path], made: list[BackupCase]) -> dict[Path, BackupCase]:
    found = {}
    for backup in made:
        file = new_name(folder, NOW - backup.days * DAY, backup.kind)
        file.hardlink_to(kinds[backup.sound])
        found[file] = backup
    return found


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(made=st.lists(BACKUPS, max_size=12), keep=st.integers(1, 4))
def test_prune_keeps_the_newest_undamaged_and_all_unscheduled_backups(
    sound: Path, damaged: Path, made: list[BackupCase], keep: int
) -> None:
    folder = sound.with_name("kept")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = _place(folder, {True: sound, False: damaged}, made)
    fresh = new_name(folder, NOW, SCHEDULED)
    fresh.hardlink_to(sound)

    gone = set(backup_folder.prune(folder, keep, fresh, now=NOW))

    assert not any(file.exists() for file in gone)
    assert all(file.exists() for file in set(files) - gone)
    assert fresh.exists()
    own = [file for file, backup in files.items() if backup.kind == SCHEDULED and backup.days >= 0]
    assert gone <= set(own)
    newest_first = sorted(own, key=lambda file: (-files[file].days, file.name), reverse=True)
    good = [file for file in newest_first if files[file].sound]
    assert not gone & set(good[: keep - 1])
    if len(good) >= keep:
        assert not [file for file in good[keep - 1 :] if file.exists()]


def test_a_damaged_backup_is_logged_and_not_counted(
    sound: Path, damaged: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    made = [BackupCase(2, SCHEDULED, sound=False), BackupCase(3, SCHEDULED, sound=True)]
    files = _place(folder, {True: sound, False: damaged}, made)
    fresh = new_name(folder, NOW, SCHEDULED)
    fresh.hardlink_to(sound)
    assert backup_folder.prune(folder, 2, fresh, now=NOW) == []
    assert all(file.exists() for file in files)
    (told,) = caplog.messages
    assert str(next(iter(files))) in told


@pytest.mark.parametrize(
    ("name", "kind", "at"),
    [
        ("musicsvc-20260301T120000Z.db", "", NOW),
        ("musicsvc-20260301T120000Z-2.db", "", NOW),
        ("musicsvc-scheduled-20260301T120000Z.db", "scheduled", NOW),
        ("musicsvc-before-0006_events-20260301T120000Z.db", "before-0006_events", NOW),
    ],
)
def test_a_name_contains_kind_and_time(tmp_path: Path, name: str, kind: str, at: int) -> None:
    (tmp_path / name).touch()
    (entry,) = backup_folder.entries(tmp_path)
    assert (entry.kind, entry.at) == (kind, at)


@pytest.mark.parametrize(
    "name",
    [
        ".musicsvc-20260301T120000Z.db.partial",
        "musicsvc-20260301T120000Z.db-wal",
        "musicsvc-20269901T120000Z.db",
        "musicsvc.db",
        "other-20260301T120000Z.db",
    ],
)
def test_files_with_other_names_are_not_backups(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert backup_folder.entries(tmp_path) == []


def test_the_newest_backup_has_a_valid_header_and_no_future_date(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    assert backup_folder.newest(folder, NOW) is None
    folder.mkdir()
    old, cut, future = (new_name(folder, NOW + days * DAY, SCHEDULED) for days in (-2, -1, 1))
    for file in (old, cut, future):
        shutil.copy(sound, file)
    cut.write_bytes(sound.read_bytes()[:-1])
    found = backup_folder.newest(folder, NOW)
    assert found is not None
    assert found.file == old
    assert backup_folder.newest(folder, NOW, "") is None
