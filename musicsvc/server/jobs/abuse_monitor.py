"""Checks tokens with refused calls against the abuse rules every second, and revokes tokens that violate a rule."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TypeVar

from musicsvc.clock import SECOND, Clock
from musicsvc.config import Abuse, Settings
from musicsvc.errors import Failure
from musicsvc.server.access.authentication import Authenticator
from musicsvc.server.call import Call
from musicsvc.server.jobs.activity_writer import ActivityWriter
from musicsvc.server.jobs.periodic import Periodic
from musicsvc.store.abuse import earlier_reads, enforcement
from musicsvc.store.abuse import rules as abuse_rules
from musicsvc.store.abuse.earlier_reads import Denial
from musicsvc.store.abuse.enforcement import RefusalCounts, TokenStatus
from musicsvc.store.abuse.probing_rule import DENIED, denies
from musicsvc.store.abuse.rate_limit_rule import REFUSED
from musicsvc.store.abuse.rules import Violation
from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store

T = TypeVar("T")
log = logging.getLogger("musicsvc")
SETTLED = 3 * SECOND // 2  # after this time every process has logged its calls, including successful ones
EVALUATION_SECONDS = 1.0
PAUSE_FACTOR, LONGEST_PAUSE_SECONDS = 9, 20.0  # a pause takes 9 times as long as the evaluation before it
EVALUATIONS = 10  # per token after a refused call, because other processes may log more of its calls


class AbuseMonitor:
    """Applies the abuse rules to tokens with refused calls. Revokes violators first in memory, then in the database."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        calls: Log,
        activity: ActivityWriter,
        access: Authenticator,
        clock: Clock,
    ) -> None:
        """`calls`: the activity log; `activity`: the writer of the log, which has the calls not written yet."""
        self._rules = settings.abuse
        self._keep_days = settings.activity.keep_days
        self._store = store
        self._calls = calls
        self._activity = activity
        self._access = access
        self._clock = clock
        self._suspected: dict[int, int] = {}  # remaining evaluations by token id
        self._unwritten: dict[int, Violation] = {}
        self._evaluation = Periodic("evaluating tokens for abuse", self._evaluate, every=EVALUATION_SECONDS)
        # Separate from the evaluation, so that a locked database does not delay it.
        self._enforcement = Periodic("revoking tokens for abuse", self._enforce, every=1.0, finish=self._enforce)
        self.revoked = 0
        self._dropped = 0
        self._incomplete_until = 0.0

    def __call__(self, call: Call) -> None:
        """Schedule the call's token for evaluation if the call was refused and abuse rules apply to the client."""
        denied = call.status in DENIED and call.route is not None and call.route.private
        if call.limits_apply and call.token_id is not None and (denied or call.status == REFUSED):
            self._suspected[call.token_id] = EVALUATIONS

    def start(self) -> None:
        self._evaluation.start()
        self._enforcement.start()

    async def stop(self) -> None:
        await self._evaluation.stop()
        await self._enforcement.stop()
        for token_id in self._unwritten:
            log.error(
                "token %s is valid again: its revocation could not be written to the database; revoke it by hand",
                token_id,
            )

    async def _evaluate(self) -> float:
        """Evaluate the scheduled tokens. Return the seconds until the next evaluation, more after a slow one."""
        time = asyncio.get_running_loop().time
        began = time()
        self._suspected = {token: left - 1 for token, left in self._suspected.items() if left}
        if token_ids := self._suspected.keys() - self._unwritten.keys():
            await self._revoke_violators(token_ids)
        return min(max(EVALUATION_SECONDS, (time() - began) * PAUSE_FACTOR), LONGEST_PAUSE_SECONDS)

    async def _revoke_violators(self, token_ids: Collection[int]) -> None:
        """Find tokens that violate a rule, and revoke them in memory; `_enforce` later revokes them in the store."""
        now = self._clock.now()
        since = now - enforcement.window(self._rules)
        # Read this before the log: a batch written in the meantime is then found twice rather than not at all.
        unwritten = self._activity.unwritten()
        waiting = [entry for entry in unwritten if entry.token_id in token_ids and entry.at >= since]
        suspicious = await self._suspicious(token_ids, waiting, since)
        if not suspicious:
            return
        written = await self._read_log(partial(activity_calls.of_tokens, suspicious, since))
        statuses = await asyncio.wrap_future(self._store.read(partial(enforcement.token_statuses, suspicious)))
        calls = [*(written or ()), *waiting]
        known = await self._read_log(partial(earlier_reads.read_before, calls, self._keep_days))
        rules = self._applicable_rules(reads_are_known=known is not None)
        counted = await asyncio.to_thread(_counted, calls, known or set(), unwritten)
        violations = await asyncio.to_thread(_violations, counted, statuses.values(), now - SETTLED, rules)
        for token_id, violation in violations.items():
            self._access.block(token_id)
            self._unwritten[token_id] = violation
            self.revoked += 1
            log.warning("revoked token %s for %s", token_id, violation.reason)
        if violations:
            self._enforcement.wake()

    async def _suspicious(self, token_ids: Collection[int], waiting: Iterable[Entry], since: int) -> set[int]:
        """Return the ids of tokens with enough refused calls to violate a rule. `waiting`: calls not in the log yet."""
        found = await self._read_log(partial(enforcement.refusal_counts, token_ids, since)) or {}
        for entry in waiting:
            if entry.token_id is not None:
                refused, denied = found.get(entry.token_id, RefusalCounts())
                found[entry.token_id] = RefusalCounts(refused + (entry.status == REFUSED), denied + denies(entry))
        return {token_id for token_id, counts in found.items() if counts.suspicious(self._rules)}

    async def _read_log(self, unit: Callable[[], T]) -> T | None:
        """Call `unit` in a transaction of the activity log. Return its result, or None if the log cannot be read."""
        try:
            await asyncio.to_thread(self._calls.prepare)
            return await asyncio.wrap_future(self._calls.read(unit))
        except Failure:
            return None

    def _applicable_rules(self, *, reads_are_known: bool) -> Abuse:
        """Return the abuse rules, without the rule on denied resources if some of the earlier reads may be unknown.

        `reads_are_known`: whether the log could be searched for earlier reads.
        """
        now = self._clock.monotonic()
        if self._activity.dropped != self._dropped:
            self._dropped = self._activity.dropped
            self._incomplete_until = now + self._rules.probe_seconds
        incomplete = now < self._incomplete_until or not reads_are_known
        return self._rules.model_copy(update={"probe_success_percent": 0}) if incomplete else self._rules

    async def _enforce(self) -> None:
        """Write the pending revocations to the database. A revocation that fails is retried at the next run."""
        for token_id, violation in list(self._unwritten.items()):
            unit = partial(enforcement.enforce, token_id, violation, self._rules, now=self._clock.now())
            try:
                result = await asyncio.wrap_future(self._store.write(unit, urgent=True))
            except Failure:
                continue
            except Exception:
                log.exception("could not write the revocation of token %s to the database; will retry", token_id)
                continue
            del self._unwritten[token_id]
            self._access.unblock(token_id)
            if result.suspended:
                log.warning("suspended the account of token %s after repeated abuse", token_id)


def _counted(calls: Collection[Entry], known: set[Denial], unwritten: Iterable[Entry]) -> list[Entry]:
    """Return the calls without the denied calls to resources that the account could read earlier.

    `known`: the denied calls for which the log has an earlier read. `unwritten`: calls that are not in the log yet, in
    which earlier reads are searched too.
    """
    return list(earlier_reads.without(calls, known | earlier_reads.read_before_in(unwritten, calls)))


def _violations(
    calls: Iterable[Entry], statuses: Iterable[TokenStatus], until: int, rules: Abuse
) -> dict[int, Violation]:
    """Apply the abuse rules to calls up to the instant `until`. Map the id of each violating token to its violation."""
    # An assistant's message and the call of a tool in it, a GET, have one time and one id.
    once = {(entry.at, entry.request_id, entry.method): entry for entry in calls if entry.at <= until}
    by_token: dict[int | None, list[Entry]] = {}
    for key in sorted(once):
        by_token.setdefault(once[key].token_id, []).append(once[key])
    found = {}
    for status in statuses:
        if status.revoked_at is None:
            counted = filter(status.counts, by_token.get(status.token_id, ()))
            if (violation := abuse_rules.evaluate(counted, rules)) is not None:
                found[status.token_id] = violation
    return found
