"""The rules on abuse replayed over the log of calls, for an operator who asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from musicsvc.store.abuse import earlier_reads, enforcement
from musicsvc.store.abuse import rules as abuse_rules
from musicsvc.store.activity import calls as activity_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.config import Abuse
    from musicsvc.store.abuse import probing_rule, rate_limit_rule
    from musicsvc.store.abuse.enforcement import TokenStatus
    from musicsvc.store.abuse.rules import Violation
    from musicsvc.store.activity.calls import Entry
    from musicsvc.store.activity.log_store import Log
    from musicsvc.store.engine.store import Store


@dataclass(slots=True)
class Replay:
    """What the log says of one token; where there is a violation, of the calls that led to it.

    `first` and `last`: the instants of the first and the last call; `answers` counts them by status and route.
    """

    status: TokenStatus
    rules: Abuse
    violation: Violation | None
    refused: rate_limit_rule.Figures
    probed: probing_rule.Figures
    first: int | None = None
    last: int | None = None
    answers: Counter[tuple[int, str | None]] = field(default_factory=Counter)


def violations(
    store: Store, log: Log, rules: Abuse, since: int, *, keep_days: int
) -> Iterator[tuple[TokenStatus, Violation]]:
    """Yield the tokens that break the rules by their calls since an instant, by id; the log holds `keep_days`."""
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
    """Judge one token alike, and say how near it came; None where there is no such token."""
    status = store.read(partial(enforcement.token_statuses, [token_id])).result().get(token_id)
    if status is None:
        return None
    evaluation = abuse_rules.Evaluation(rules)
    calls = _calls(log, status, since) if log.open_existing() else iter(())
    counted = _counted(log, calls, keep_days)
    violation = next((found for entry in counted if (found := evaluation.see(entry)) is not None), None)
    heard = Replay(status, rules, violation, evaluation.refused, evaluation.probed)
    if log.open_existing():
        since = since if violation is None else violation.since
        for entry in _calls(log, status, since):
            if violation is not None and entry.at > violation.at:
                break
            heard.first = heard.first or entry.at
            heard.last = entry.at
            heard.answers[entry.status, entry.route] += 1
    return heard


def _calls(log: Log, status: TokenStatus, since: int) -> Iterator[Entry]:
    """The calls of the token that are judged, in the order of time."""
    wanted = activity_calls.Filter(token_id=status.token_id, since=max(since, status.since))
    return filter(status.counts, activity_calls.replay(log, wanted))


def _counted(log: Log, calls: Iterator[Entry], keep_days: int) -> Iterator[Entry]:
    """Yield the calls but for denials of what the account had read before, which is looked up a slice at a time."""
    while some := list(islice(calls, activity_calls.SLICE)):
        known = log.read(partial(earlier_reads.read_before, some, keep_days)).result()
        yield from earlier_reads.without(some, known)
