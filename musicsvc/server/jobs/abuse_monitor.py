"""Judging tokens by what the log of calls holds of them, every second, off the path of any request."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from musicsvc.clock import SECOND
from musicsvc.errors import Failure
from musicsvc.store.abuse import earlier_reads, enforcement
from musicsvc.store.abuse import rules as abuse_rules
from musicsvc.store.abuse.enforcement import RefusalCounts
from musicsvc.store.abuse.probing_rule import DENIED, denies
from musicsvc.store.abuse.rate_limit_rule import REFUSED
from musicsvc.store.activity import calls as activity_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from musicsvc.clock import Clock
    from musicsvc.config import Abuse, Settings
    from musicsvc.server.access.authentication import Authenticator
    from musicsvc.server.call import Call
    from musicsvc.server.jobs.activity_writer import ActivityWriter
    from musicsvc.store.abuse.earlier_reads import Denial
    from musicsvc.store.abuse.enforcement import TokenStatus
    from musicsvc.store.abuse.rules import Violation
    from musicsvc.store.activity.calls import Entry
    from musicsvc.store.activity.log import Log
    from musicsvc.store.engine.store import Store

T = TypeVar("T")
log = logging.getLogger("musicsvc")
SETTLED = 3 * SECOND // 2  # by then every process has written its calls, the successful ones too
JUDGING_SECONDS = 1.0
REST, LONGEST_REST_SECONDS = 9, 20.0  # times as long as the judging took, but a minute must do for all of it
LOOKS = 10  # at a token, after it was refused something: other processes may have seen more of it


class AbuseMonitor:
    """Sees which tokens are refused something, looks their calls up, and revokes those that pass a threshold.

    It takes effect in the memory of this process first, so that a full disk does not keep a token alive; then in the
    store, tried again every second, and from there in all other processes.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        calls: Log,
        waiting: ActivityWriter,
        authenticator: Authenticator,
        clock: Clock,
    ) -> None:
        """`calls` is the log to be read, `waiting` holds what could not be written to it yet."""
        self._rules = settings.abuse
        self._keep_days = settings.activity.keep_days
        self._store = store
        self._calls = calls
        self._waiting = waiting
        self._authenticator = authenticator
        self._clock = clock
        self._suspected: dict[int, int] = {}
        self._unwritten: dict[int, Violation] = {}
        self._judging: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self.revoked = 0
        self._dropped = 0
        self._blind_until = 0.0

    def __call__(self, call: Call) -> None:
        """Note a token that was refused something that counts."""
        denied = call.status in DENIED and call.route is not None and call.route.private
        if call.judged and call.token_id is not None and (denied or call.status == REFUSED):
            self._suspected[call.token_id] = LOOKS

    def start(self) -> None:
        """AbuseMonitor from now on."""
        self._judging = asyncio.create_task(self._judge_for_ever())

    async def stop(self) -> None:
        """Write what has been decided, a last time."""
        if self._judging is not None:
            self._judging.cancel()
            with suppress(asyncio.CancelledError):
                await self._judging
        if self._writing is not None:
            await self._writing
        await self._enforce()
        for token_id in self._unwritten:
            log.error("token %s was revoked in memory only: the database could not be written", token_id)

    async def _judge_for_ever(self) -> None:
        time, took = asyncio.get_running_loop().time, 0.0
        while True:
            # Many that are judged at length must not keep those waiting who are to be answered.
            await asyncio.sleep(min(max(JUDGING_SECONDS, took * REST), LONGEST_REST_SECONDS))
            began = time()
            try:
                await self._judge()
            except Failure as failure:
                log.warning("judging tokens: %s", failure.here)
            except Exception:
                log.exception("judging tokens failed")
            took = time() - began
            # Beside the judging, which a database that is locked must not hold up.
            if self._unwritten and (self._writing is None or self._writing.done()):
                self._writing = asyncio.create_task(self._enforce())

    async def _judge(self) -> None:
        """AbuseMonitor the tokens that were refused something lately."""
        self._suspected = {token: looks - 1 for token, looks in self._suspected.items() if looks}
        token_ids = self._suspected.keys() - self._unwritten.keys()
        if not token_ids:
            return
        now = self._clock.now()
        since = now - enforcement.window(self._rules)
        # First what waits: a batch that is written meanwhile is then found in the log.
        unwritten = self._waiting.unwritten()
        waiting = [entry for entry in unwritten if entry.token_id in token_ids and entry.at >= since]
        suspicious = await self._suspicious(token_ids, waiting, since)
        if suspicious:
            written = await self._read_log(partial(activity_calls.of_tokens, suspicious, since))
            token_statuses = await asyncio.wrap_future(
                self._store.read(partial(enforcement.token_statuses, suspicious))
            )
            calls = [*(written or ()), *waiting]
            known = await self._read_log(partial(earlier_reads.read_before, calls, self._keep_days))
            rules = self._rules_now(reads_are_known=known is not None)
            counted = await asyncio.to_thread(_counted, calls, known or set(), unwritten)
            violations = await asyncio.to_thread(_violations, counted, token_statuses.values(), now - SETTLED, rules)
            for token_id, violation in violations.items():
                # From here on it is refused; the store follows.
                self._authenticator.end(token_id)
                self._unwritten[token_id] = violation
                self.revoked += 1
                log.warning("token %s is revoked: %s", token_id, violation.reason)

    async def _suspicious(self, token_ids: Collection[int], waiting: Iterable[Entry], since: int) -> set[int]:
        """The tokens that have been refused so much that their calls are worth reading."""
        found = await self._read_log(partial(enforcement.refusal_counts, token_ids, since)) or {}
        for entry in waiting:
            if entry.token_id is not None:
                refused, denied = found.get(entry.token_id, RefusalCounts())
                found[entry.token_id] = RefusalCounts(refused + (entry.status == REFUSED), denied + denies(entry))
        return {token_id for token_id, counts in found.items() if counts.suspicious(self._rules)}

    async def _read_log(self, unit: Callable[[], T]) -> T | None:
        """What the log tells, None where it cannot be read now."""
        try:
            await asyncio.to_thread(self._calls.prepare)
            return await asyncio.wrap_future(self._calls.read(unit))
        except Failure:
            return None

    def _rules_now(self, *, reads_are_known: bool) -> Abuse:
        """The rules, without the one on probing while successes or earlier reads may be missing from the log."""
        now = self._clock.monotonic()
        if self._waiting.dropped != self._dropped:
            self._dropped = self._waiting.dropped
            self._blind_until = now + self._rules.probe_seconds
        blind = now < self._blind_until or not reads_are_known
        return self._rules.model_copy(update={"probe_success_percent": 0}) if blind else self._rules

    async def _enforce(self) -> None:
        """Write the violations that are not written yet; what cannot be written now is tried again."""
        for token_id, violation in list(self._unwritten.items()):
            unit = partial(enforcement.enforce, token_id, violation, self._rules, now=self._clock.now())
            try:
                result = await asyncio.wrap_future(self._store.write_urgently(unit))
            except Failure:
                continue
            except Exception:
                log.exception("writing the revocation of token %s failed", token_id)
                continue
            del self._unwritten[token_id]
            self._authenticator.release(token_id)
            if result.suspended:
                log.warning("the account of token %s is suspended", token_id)


def _counted(calls: Collection[Entry], known: set[Denial], unwritten: Iterable[Entry]) -> list[Entry]:
    """The calls but for denials of what the account had read before, by the log (`known`) or by what waits for it."""
    return list(earlier_reads.without(calls, known | earlier_reads.read_before_in(unwritten, calls)))


def _violations(
    calls: Iterable[Entry], token_statuses: Iterable[TokenStatus], until: int, rules: Abuse
) -> dict[int, Violation]:
    """The violations on these tokens, as far as there are any, by what is known up to this instant."""
    once = {(entry.at, entry.request_id): entry for entry in calls if entry.at <= until}
    by_token: dict[int | None, list[Entry]] = {}
    for key in sorted(once):
        by_token.setdefault(once[key].token_id, []).append(once[key])
    found = {}
    for status in token_statuses:
        if status.revoked_at is None:
            judged = filter(status.counts, by_token.get(status.token_id, ()))
            if (violation := abuse_rules.evaluate(judged, rules)) is not None:
                found[status.token_id] = violation
    return found
