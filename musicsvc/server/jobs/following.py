"""Lets the parts of a server follow the clock and the snapshots of a demo."""

from dataclasses import dataclass

from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.access.rate_limits import RateLimitCounter
from musicsvc.server.freshness import Freshness
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.server.jobs.import_worker import ImportWorker
from musicsvc.server.responses.answer_cache import AnswerCache
from musicsvc.server.responses.drawings import Drawings


@dataclass(frozen=True, slots=True)
class Followers:
    """The parts that depend on the time, or keep in memory what they have read. Use it on the event loop."""

    authenticator: Authenticator
    counter: RateLimitCounter
    freshness: Freshness
    answers: AnswerCache
    reports: Drawings
    activity: ActivityWriter
    imports: ImportWorker

    async def advanced(self) -> None:
        """Begin the work that is due by the new time."""
        self.activity.prune_soon()
        self.imports.settle_soon()

    async def restored(self, now: int) -> None:
        """Forget what is not of the restored database, and what was counted and logged after its time `now`."""
        self.freshness.now()  # notices the change before the next one
        self.authenticator.forget()
        self.counter.forget()
        self.answers.clear()
        self.reports.clear()
        await self.activity.forget_after(now)
