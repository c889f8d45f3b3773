"""Evaluate the abuse rules over the calls in the activity log, for the operator's commands."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from musicsvc.config import Abuse
from musicsvc.store.abuse import earlier_reads, enforcement
from musicsvc.store.abuse import rules as abuse_rules
from musicsvc.store.abuse.enforcement import TokenStatus
from musicsvc.store.abuse.probing_rule import ProbeFigures
from musicsvc.store.abuse.rate_limit_rule import RefusalFigures
from musicsvc.store.abuse.rules import Violation
from musicsvc.store.activity import calls as activity_calls
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.store import Store


@dataclass(slots=True)
class Replay:
    """The result of the abuse rules for a token's calls. After a violation, only the violating calls are counted."""

    status: TokenStatus
    rules: Abuse
    violation: Violation | None
    refused: RefusalFigures
    probed: ProbeFigures
    first: int | None = None  # time of the first counted call
    last: int | None = None  # time of the last counted call
    answers: Counter[tuple[int, str | None]] = field(default_factory=Counter)  # counted calls by status and route

    @property
    def refusals_text(self) -> str:
        """Compare the requests that were rate-limited with the threshold, in one line of text."""
        refused, rules = self.refused, self.rules
        compared = f"{refused.refused} of {rules.refusals} requests refused with 429 in {rules.refusal_seconds} s"
        return f"{compared} without a pause; {refused.early} came too early"

    @property
    def probes_text(self) -> str:
        """Compare the resources that were denied with the threshold, in one line of text."""
        probed, rules = self.probed, self.rules
        compared = f"{probed.resources} of {rules.probes} different resources denied in {rules.probe_seconds} s"
        successes = f"{probed.successes} of {probed.calls} calls successful"
        return f"{compared}; {successes} ({rules.probe_success_percent} % required)"


def violations(
    store: Store, log: Log, rules: Abuse, since: int, *, keep_days: int
) -> Iterator[tuple[TokenStatus, Violation]]:
    """Yield each token that violated a rule since a time (microseconds) with its violation, ordered by token id."""
    if not log.open_existing():
        return
    refusal_counts = log.read(partial(enforcement.refusal_counts, None, since)).result()
    suspicious = [token_id for token_id, counts in refusal_counts.items() if counts.suspicious(rules)]
    token_statuses = store.read(partial(enforcement.token_statuses, suspicious)).result()
    for _, status in sorted(token_statuses.items()):
        violation = abuse_rules.evaluate(_counted(log, _calls(log, status, since), keep_days), rules)
        if violation is not None:
            yield status, violation


def replay_token(store: Store, log: Log, rules: Abuse, token_id: int, since: int, *, keep_days: int) -> Replay | None:
    """Apply the rules to a token's calls since a time (microseconds). Return None if the token does not exist."""
    status = store.read(partial(enforcement.token_statuses, [token_id])).result().get(token_id)
    if status is None:
        return None
    evaluation = abuse_rules.Evaluation(rules)
    calls = _calls(log, status, since) if log.open_existing() else iter(())
    counted = _counted(log, calls, keep_days)
    violation = next((found for entry in counted if (found := evaluation.add(entry)) is not None), None)
    replay = Replay(status, rules, violation, evaluation.refused, evaluation.probed)
    if log.open_existing():
        since = since if violation is None else violation.since
        for entry in _calls(log, status, since):
            if violation is not None and entry.at > violation.at:
                break
            replay.first = replay.first or entry.at
            replay.last = entry.at
            replay.answers[entry.status, entry.route] += 1
    return replay


def _calls(log: Log, status: TokenStatus, since: int) -> Iterator[Entry]:
    """Return the token's calls since the latest of `since`, the token's creation and its last reset. Oldest first."""
    wanted = activity_calls.Filter(token_id=status.token_id, since=max(since, status.since))
    return filter(status.counts, activity_calls.replay(log, wanted))


def _counted(log: Log, calls: Iterator[Entry], keep_days: int) -> Iterator[Entry]:
    """Yield the calls that the rules count, without denials of resources that the account had read before."""
    while some := list(islice(calls, activity_calls.SLICE)):
        known = log.read(partial(earlier_reads.read_before, some, keep_days)).result()
        yield from earlier_reads.without(some, known)
