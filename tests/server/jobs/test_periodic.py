"""Background jobs: a failure does not end the series, and the last run comes after all others."""

import asyncio

import pytest

from musicsvc.errors import Failure
from musicsvc.server.jobs.periodic import Periodic
from musicsvc.server.logs.throttled_warning import ThrottledWarning


class Job:
    """A job that records its runs and raises the given faults."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.faults: list[Exception | None] = []
        self.pause: float | None = 0.0
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self) -> float | None:
        self.runs.append("begun")
        await self.gate.wait()
        self.runs.append("ended")
        if self.faults and (fault := self.faults.pop(0)) is not None:
            raise fault
        return self.pause

    async def finish(self) -> None:
        self.runs.append("finished")

    async def ran(self, times: int) -> None:
        async with asyncio.timeout(30):
            while self.runs.count("ended") < times:  # noqa: ASYNC110 - the job has no event for it
                await asyncio.sleep(0.001)


async def test_a_failure_is_logged_once_until_it_is_over_and_a_defect_every_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = Job()
    job.faults = [Failure("full"), Failure("full"), None, Failure("full"), ValueError(), ValueError(), None]
    periodic = Periodic("sweeping", job.run, every=0.0)
    periodic.start()
    await job.ran(8)
    await periodic.stop()
    failed, broken, over = (
        "background job failed: sweeping: full",
        "background job failed: sweeping: unhandled exception",
        "background job recovered: sweeping",
    )
    assert caplog.messages == [failed, over, failed, broken, broken, over]


async def test_the_run_in_progress_ends_before_the_last_one() -> None:
    job = Job()
    job.gate.clear()
    periodic = Periodic("sweeping", job.run, every=60, first=0, finish=job.finish)
    periodic.start()
    while not job.runs:  # noqa: ASYNC110 - the job has no event for it
        await asyncio.sleep(0)
    stopping = asyncio.create_task(periodic.stop())
    await asyncio.sleep(0.05)
    assert job.runs == ["begun"]
    job.gate.set()
    await stopping
    assert job.runs == ["begun", "ended", "finished"]


async def test_a_failed_job_is_not_said_to_work_because_the_server_stops(caplog: pytest.LogCaptureFixture) -> None:
    job = Job()
    job.faults = [Failure("full")]
    periodic = Periodic("sweeping", job.run, every=60, first=0, finish=job.finish)
    periodic.start()
    await job.ran(1)
    await periodic.stop()
    assert caplog.messages == ["background job failed: sweeping: full"]


async def test_a_job_chooses_its_next_time_and_can_be_woken() -> None:
    job = Job()
    job.pause = 60
    periodic = Periodic("sweeping", job.run, every=0.0)
    periodic.start()
    await job.ran(1)
    await asyncio.sleep(0.05)
    assert job.runs.count("ended") == 1
    periodic.wake()
    await job.ran(2)
    await asyncio.sleep(0.05)
    assert job.runs.count("ended") == 2
    await periodic.stop()


def test_a_warning_is_silent_for_its_seconds(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    warning = ThrottledWarning(10, lambda: now)
    for now in (0.0, 5.0, 9.9, 10.0, 11.0):
        warning.warn("%s s", now)
    assert caplog.messages == ["0.0 s", "10.0 s"]
    assert warning.reset()
    assert not warning.reset()
    warning.warn("again")
    assert caplog.messages[-1] == "again"
