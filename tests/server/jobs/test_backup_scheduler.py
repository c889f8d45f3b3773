"""Scheduled backups: made by one process when the last good one is too old, and never incomplete."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from stat import S_IMODE
from types import SimpleNamespace

import pytest

from musicsvc import config
from musicsvc.cli.demo import DEMO
from musicsvc.clock import DAY, SECOND, MovableClock
from musicsvc.errors import Failure
from musicsvc.server.jobs import backup_scheduler
from musicsvc.server.jobs.backup_scheduler import BackupScheduler
from musicsvc.server.metrics.collectors import add_backups
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from tests.faults import small_disk
from tests.support.bounds import Bounds
from tests.support.damage import overwrite_middle_page
from tests.support.program import Program
from tests.support.program import until as until_true
from tests.support.waiting import until

HOUR = DAY // 24
pytestmark = pytest.mark.only_on("sqlite")


@pytest.fixture
def settings(store_url: str) -> config.Settings:
    return config.load(options={"database_url": store_url, "backups.keep": 2})


def made(settings: config.Settings) -> list[Path]:
    """Return the backups, newest first."""
    return [entry.file for entry in backup_folder.entries(settings.backup_folder)]


@asynccontextmanager
async def started(scheduler: BackupScheduler) -> AsyncIterator[None]:
    scheduler.start()
    yield
    await scheduler.stop()


async def check(scheduler: BackupScheduler) -> float:
    """Make the backup that is due. Return the seconds until the next check."""
    return await asyncio.to_thread(scheduler.make_if_due)


async def test_the_next_check_is_when_the_backup_is_due_and_at_most_a_minute_away(
    settings: config.Settings, clock: MovableClock
) -> None:
    scheduler = BackupScheduler(settings, clock)
    for advance, seconds in ((0, 60.0), (DAY - 10 * SECOND, 10.0), (9 * SECOND + SECOND // 2, 1.0)):
        clock.advance(advance)
        assert await check(scheduler) == seconds
    await scheduler.stop()


async def test_a_backup_is_made_when_the_last_one_is_too_old(
    settings: config.Settings, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "musicsvc")
    scheduler = BackupScheduler(settings, clock)
    await check(scheduler)
    (first,) = made(settings)
    assert first.name == "musicsvc-scheduled-20260301T120000Z.db"
    assert verify.check(first).rows
    clock.advance(23 * HOUR)
    await check(scheduler)
    assert made(settings) == [first]
    clock.advance(HOUR)
    await check(scheduler)
    assert len(made(settings)) == 2
    clock.advance(DAY)
    await check(scheduler)
    assert len(made(settings)) == 2
    assert first not in made(settings)
    assert f"deleted the old backup {first}" in caplog.messages
    await scheduler.stop()


async def test_the_first_check_is_not_at_once(settings: config.Settings, clock: MovableClock) -> None:
    async with started(BackupScheduler(settings, clock, first_check=0.5)):
        await asyncio.sleep(0.2)
        assert not settings.backup_folder.exists()
        await until(lambda: made(settings))


async def test_a_damaged_backup_counts_neither_for_the_schedule_nor_for_metrics(
    settings: config.Settings, clock: MovableClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = BackupScheduler(settings, clock), BackupScheduler(settings, clock)
    await check(first)
    clock.advance(25 * HOUR)
    await check(first)
    await first.stop()
    clock.advance(2 * HOUR)
    spoiled, good = made(settings)
    overwrite_middle_page(spoiled)
    figures: dict[str, Callable[[], float | None]] = {}
    add_backups(SimpleNamespace(on_scrape=lambda name, _, ask: figures.update({name: ask})), settings, clock)  # type: ignore[arg-type]

    def no_room(*_: object) -> None:
        raise Failure("There is no room.")

    with monkeypatch.context() as full:
        full.setattr(create, "create", no_room)
        with pytest.raises(Failure, match="no room"):
            await check(second)
    assert figures["musicsvc_backup_age_seconds"]() == 27 * 3_600
    assert figures["musicsvc_backup_bytes"]() == good.stat().st_size
    assert caplog.text.count(f"ignoring an unusable backup: {spoiled} is damaged") == 1
    await check(second)
    assert made(settings)[1:] == [spoiled, good]
    assert figures["musicsvc_backup_age_seconds"]() == 0
    await second.stop()


async def test_all_damaged_backups_are_named_to_other_processes(settings: config.Settings, clock: MovableClock) -> None:
    first = BackupScheduler(settings, clock)
    await check(first)
    clock.advance(25 * HOUR)
    await check(first)
    await first.stop()
    damaged = made(settings)
    for file in damaged:
        overwrite_middle_page(file)
    second = BackupScheduler(settings, clock)
    await check(second)
    named = backup_folder.known_damaged(settings.backup_folder)
    assert sorted(named) == sorted(backup_folder.file_id(file) for file in damaged)
    await second.stop()


async def test_one_process_makes_backups_and_another_takes_over(settings: config.Settings, clock: MovableClock) -> None:
    several = [BackupScheduler(settings, clock) for _ in range(3)]
    await asyncio.gather(*(check(scheduler) for scheduler in several))
    assert len(made(settings)) == 1
    (leader,) = [scheduler for scheduler in several if scheduler._lock is not None]
    await leader.stop()
    clock.advance(DAY)
    await asyncio.gather(*(check(scheduler) for scheduler in several if scheduler is not leader))
    assert len(made(settings)) == 2
    for scheduler in several:
        if scheduler is not leader:
            await scheduler.stop()


async def test_the_folder_is_created_and_its_lock_forgets_the_backups_of_earlier_servers(
    settings: config.Settings, clock: MovableClock, tmp_path: Path
) -> None:
    folder = tmp_path / "some" / "where"
    settings = settings.model_copy(update={"backups": settings.backups.model_copy(update={"folder": folder})})
    scheduler = BackupScheduler(settings, clock)
    await check(scheduler)
    await scheduler.stop()
    lock = folder / backup_folder.LOCK
    assert [S_IMODE(place.stat().st_mode) for place in (folder, lock, *made(settings))] == [0o700, 0o600, 0o600]
    lock.write_text("musicsvc-20260101T000000Z.db 1 2 3\n")
    later = BackupScheduler(settings, clock)
    await check(later)
    assert backup_folder.known_damaged(folder) == []
    assert lock.read_bytes() == b""
    await later.stop()


async def test_a_failure_is_logged_once_and_when_it_is_over(
    settings: config.Settings, clock: MovableClock, caplog: pytest.LogCaptureFixture, bounds: Bounds
) -> None:
    bounds(backup_retry_seconds=0.02)
    settings.backup_folder.write_text("in the way")
    cannot = f"The folder {settings.backup_folder} cannot be created: it is not a folder."
    failure = f"background job failed: making a backup: {cannot} Create it, or set backups.folder."
    async with started(BackupScheduler(settings, clock, first_check=0)):
        await until(lambda: caplog.messages)
        await asyncio.sleep(0.2)
        assert caplog.messages == [failure]
        settings.backup_folder.unlink()
        await until(lambda: len(caplog.messages) > 1)
    assert caplog.messages == [failure, "background job recovered: making a backup"]
    assert len(made(settings)) == 1


def test_a_folder_that_cannot_be_written_is_told_with_the_remedy(
    settings: config.Settings, clock: MovableClock
) -> None:
    with small_disk.mounted(settings.backup_folder) as small:
        small.mount("ro")
        with pytest.raises(Failure, match=rf"^The folder {small.folder} is on a read-only disk: .* Mount a disk"):
            BackupScheduler(settings, clock).make_if_due()


async def test_a_data_folder_that_was_moved_is_not_created_again(
    settings: config.Settings, clock: MovableClock
) -> None:
    scheduler = BackupScheduler(settings, clock)
    data = settings.own_folder
    data.rename(data.with_name("moved"))
    with pytest.raises(Failure, match=r"musicsvc\.db: No such file or directory\.$"):
        await check(scheduler)
    assert not data.exists()
    data.with_name("moved").rename(data)
    await check(scheduler)
    assert len(made(settings)) == 1
    await scheduler.stop()


async def test_a_backup_in_progress_is_abandoned_at_the_stop(
    settings: config.Settings, clock: MovableClock, bounds: Bounds
) -> None:
    bounds(backup_slice_pages=1, backup_pause_seconds=0.05)
    async with started(BackupScheduler(settings, clock, first_check=0)):
        await until(lambda: list(settings.backup_folder.glob(".musicsvc-*.partial")))
    assert {file.name for file in settings.backup_folder.iterdir()} == {backup_scheduler.LOCK}


def test_there_is_no_scheduler_when_turned_off_in_the_demo_or_on_postgres(
    settings: config.Settings, clock: MovableClock
) -> None:
    assert isinstance(backup_scheduler.build(settings, clock), BackupScheduler)
    for options in (
        {"database_url": settings.store_url, "backups.every_hours": 0},
        {"database_url": settings.store_url, **DEMO},
        {"database_url": "postgresql:///music"},
    ):
        assert backup_scheduler.build(config.load(options=options), clock) is None


@pytest.mark.slow
def test_a_server_of_several_processes_makes_one_backup(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    folder = Path(store_url.removeprefix("sqlite:///")).parent / "backups"
    with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
        assert program.root
        until_true(lambda: backup_folder.entries(folder))
        time.sleep(0.5)
        assert program.end(signal.SIGTERM) == 0
    (entry,) = backup_folder.entries(folder)
    assert entry.kind == "scheduled"
    assert verify.check(entry.file).rows
