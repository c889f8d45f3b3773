"""Backups by the clock: made by one process alone, when the last good one is too old, and never half."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from musicsvc import config
from musicsvc.cli.demo import DEMO
from musicsvc.clock import DAY, MovableClock
from musicsvc.errors import Failure
from musicsvc.server.app import App
from musicsvc.server.jobs import backup_scheduler as schedules
from musicsvc.server.jobs.backup_scheduler import Schedule
from musicsvc.server.metrics.collectors import of_backups
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.store import Store
from tests.support.program import Program, until

HOUR = DAY // 24
pytestmark = pytest.mark.only_on("sqlite")


@pytest.fixture
def settings(store_url: str) -> config.Settings:
    return config.load(options={"database_url": store_url, "backups.keep": 2})


def made(settings: config.Settings) -> list[Path]:
    """The backups there are, newest first."""
    return [entry.file for entry in backup_folder.entries(settings.backup_folder)]


async def look(schedule: Schedule) -> None:
    """Have the schedule look once, and see what came of it."""
    schedule._next = 0.0
    with suppress(Failure):  # of the time before
        await schedule(last=False)
    while schedule._under_way is not None:
        await ended(schedule)
        await schedule(last=False)


async def ended(schedule: Schedule) -> None:
    """Wait until nothing is under way."""
    while schedule._under_way is not None and not schedule._under_way.done():  # noqa: ASYNC110 - a thread, no event
        await asyncio.sleep(0.005)


async def test_a_backup_is_made_when_the_last_one_is_too_old(
    settings: config.Settings, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "musicsvc")
    schedule = Schedule(settings, clock)
    await look(schedule)
    (first,) = made(settings)
    assert first.name == "musicsvc-scheduled-20260301T120000Z.db"
    assert verify.prove(first).rows
    clock.advance(23 * HOUR)
    await look(schedule)
    assert made(settings) == [first]
    clock.advance(HOUR)
    await look(schedule)
    assert len(made(settings)) == 2
    clock.advance(DAY)
    await look(schedule)
    assert len(made(settings)) == 2
    assert first not in made(settings)
    assert f"deleted the old backup {first}" in caplog.messages
    await schedule(last=True)


async def test_the_first_look_is_not_at_once(settings: config.Settings, clock: MovableClock) -> None:
    schedule = Schedule(settings, clock)
    await schedule(last=False)
    assert schedule._under_way is None
    await schedule(last=True)


async def test_a_backup_that_is_cut_short_or_of_the_future_is_none(
    settings: config.Settings, clock: MovableClock
) -> None:
    settings.backup_folder.mkdir()
    for days in (0, 3):
        name = backup_folder.new_name(settings.backup_folder, clock.now() + days * DAY, "scheduled")
        create.make(Path(settings.store_url.removeprefix("sqlite:///")), name)
    cut = made(settings)[1]
    cut.write_bytes(cut.read_bytes()[:-1])
    schedule = Schedule(settings, clock)
    await look(schedule)
    assert len(made(settings)) == 3
    await schedule(last=True)


def spoil(file: Path) -> None:
    """Damage it in the middle; its size stays."""
    content = file.read_bytes()
    at = len(content) // 2 // 4096 * 4096
    file.write_bytes(content[:at] + b"\xa5" * 4096 + content[at + 4096 :])


async def test_a_backup_that_is_spoiled_within_is_none_for_the_schedule_and_the_figures(
    settings: config.Settings, clock: MovableClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Schedule(settings, clock), Schedule(settings, clock)
    await look(first)
    clock.advance(25 * HOUR)
    await look(first)
    await first(last=True)
    clock.advance(2 * HOUR)
    spoiled, good = made(settings)
    spoil(spoiled)
    figures: dict[str, Callable[[], float | None]] = {}
    of_backups(SimpleNamespace(once=lambda name, _, ask: figures.update({name: ask})), settings, clock)  # type: ignore[arg-type]

    def no_room(*_: object) -> None:
        raise Failure("There is no room.")

    with monkeypatch.context() as full:
        full.setattr(create, "make", no_room)
        with pytest.raises(Failure, match="no room"):
            await look(second)
    assert figures["musicsvc_backup_age_seconds"]() == 27 * 3_600
    assert figures["musicsvc_backup_bytes"]() == good.stat().st_size
    assert caplog.text.count(f"does not count: {spoiled} is damaged") == 1
    await look(second)
    assert made(settings)[1:] == [spoiled, good]
    assert figures["musicsvc_backup_age_seconds"]() == 0
    await second(last=True)


async def test_one_of_many_makes_them_and_another_takes_its_place(
    settings: config.Settings, clock: MovableClock
) -> None:
    several = [Schedule(settings, clock) for _ in range(3)]
    await asyncio.gather(*(look(schedule) for schedule in several))
    assert len(made(settings)) == 1
    (leader,) = [schedule for schedule in several if schedule._lead is not None]
    await leader(last=True)
    clock.advance(DAY)
    await asyncio.gather(*(look(schedule) for schedule in several if schedule is not leader))
    assert len(made(settings)) == 2
    for schedule in several:
        if schedule is not leader:
            await schedule(last=True)


async def test_a_backup_that_fails_is_told_and_tried_again_later(
    settings: config.Settings, clock: MovableClock
) -> None:
    settings.backup_folder.write_text("in the way")
    schedule = Schedule(settings, clock)
    with pytest.raises(Failure, match=rf"^{settings.backup_folder}: "):
        await look(schedule)
    with pytest.raises(Failure, match=rf"^{settings.backup_folder}: "):
        await schedule(last=False)
    assert schedule._under_way is None
    assert schedule._next > clock.monotonic() + schedules.RETRY_SECONDS / 2
    settings.backup_folder.unlink()
    await look(schedule)
    assert len(made(settings)) == 1
    await schedule(last=True)


def failing_chore(settings: config.Settings, store: Store, clock: MovableClock) -> tuple[App, Schedule]:
    """A server whose backups have a file in their way, and nothing else to do."""
    settings.backup_folder.write_text("in the way")
    app, schedule = App(settings, store, clock, "http://127.0.0.1"), Schedule(settings, clock, first_look=0)
    app._chores = [("making a backup", schedule)]
    return app, schedule


async def test_the_log_says_that_it_works_again_once_a_backup_is_made(
    settings: config.Settings, store: Store, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    app, schedule = failing_chore(settings, store, clock)
    caplog.set_level(logging.INFO, "musicsvc")

    async def told(times: int) -> list[str]:
        caplog.clear()
        for _ in range(times):
            await app._do_chores(last=False)
            await ended(schedule)
        return [message for message in caplog.messages if message.startswith("making a backup: ")]

    assert len(await told(5)) == 1
    schedule._next = 0.0
    assert await told(5) == []
    settings.backup_folder.unlink()
    schedule._next = 0.0
    assert await told(5) == ["making a backup: works again"]
    assert len(made(settings)) == 1
    await schedule(last=True)


async def test_the_log_does_not_say_so_because_the_server_ends(
    settings: config.Settings, store: Store, clock: MovableClock, caplog: pytest.LogCaptureFixture
) -> None:
    app, schedule = failing_chore(settings, store, clock)
    caplog.set_level(logging.INFO, "musicsvc")
    await app._do_chores(last=False)
    await ended(schedule)
    await app._do_chores(last=False)
    await app._do_chores(last=True)
    assert [message for message in caplog.messages if "backup: " in message] == [
        f"making a backup: {settings.backup_folder}: File exists."
    ]


async def test_a_backup_under_way_is_given_up_at_the_end(
    settings: config.Settings, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create, "SLICE_PAGES", 1)
    monkeypatch.setattr(create, "PAUSE_SECONDS", 0.05)
    schedule = Schedule(settings, clock, first_look=0)
    await schedule(last=False)
    while not list(settings.backup_folder.glob(".musicsvc-*.partial")):  # noqa: ASYNC110 - a file, no event
        await asyncio.sleep(0.005)
    began = time.monotonic()
    await schedule(last=True)
    assert time.monotonic() - began < 2
    assert {file.name for file in settings.backup_folder.iterdir()} == {schedules.LOCK}


def test_there_are_none_where_they_are_turned_off_in_the_demo_or_on_postgres(
    settings: config.Settings, clock: MovableClock
) -> None:
    assert isinstance(schedules.schedule(settings, clock), Schedule)
    for options in (
        {"database_url": settings.store_url, "backups.every_hours": 0},
        {"database_url": settings.store_url, **DEMO},
        {"database_url": "postgresql:///music"},
    ):
        assert schedules.schedule(config.load(options=options), clock) is None


def test_a_server_of_several_processes_makes_one_backup(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    folder = Path(store_url.removeprefix("sqlite:///")).parent / "backups"
    with Program(tmp_path, "serve", "--port", "0", "--workers", "2") as program:
        assert program.root
        until(lambda: backup_folder.entries(folder))
        time.sleep(1)
        assert program.end(signal.SIGTERM) == 0
    (entry,) = backup_folder.entries(folder)
    assert entry.kind == "scheduled"
    assert verify.prove(entry.file).rows
