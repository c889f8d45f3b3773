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
    from musicsvc.store.abuse.enforcement import Standing
    from musicsvc.store.abuse.rules import Verdict
    from musicsvc.store.activity.calls import Entry
    from musicsvc.store.activity.log import Log
    from musicsvc.store.engine.store import Store


@dataclass(slots=True)
class Hearing:
    """What the log says of one token; where there is a verdict, of the calls that led to it.

    `first` and `last`: the instants of the first and the last call; `answers` counts them by status and route.
    """

    standing: Standing
    rules: Abuse
    verdict: Verdict | None
    refused: rate_limit_rule.Figures
    probed: probing_rule.Figures
    first: int | None = None
    last: int | None = None
    answers: Counter[tuple[int, str | None]] = field(default_factory=Counter)


def verdicts(store: Store, log: Log, rules: Abuse, since: int, *, keep_days: int) -> Iterator[tuple[Standing, Verdict]]:
    """Yield the tokens that break the rules by their calls since an instant, by id; the log holds `keep_days`."""
    if not log.look():
        return
    tallies = log.read(partial(enforcement.tallies, None, since)).result()
    suspicious = [token_id for token_id, tally in tallies.items() if tally.suspicious(rules)]
    standings = store.read(partial(enforcement.standings, suspicious)).result()
    for _, standing in sorted(standings.items()):
        verdict = abuse_rules.judge(_counted(log, _calls(log, standing, since), keep_days), rules)
        if verdict is not None:
            yield standing, verdict


def hear(store: Store, log: Log, rules: Abuse, token_id: int, since: int, *, keep_days: int) -> Hearing | None:
    """Judge one token alike, and say how near it came; None where there is no such token."""
    standing = store.read(partial(enforcement.standings, [token_id])).result().get(token_id)
    if standing is None:
        return None
    trial = abuse_rules.Trial(rules)
    calls = _calls(log, standing, since) if log.look() else iter(())
    counted = _counted(log, calls, keep_days)
    verdict = next((found for entry in counted if (found := trial.see(entry)) is not None), None)
    heard = Hearing(standing, rules, verdict, trial.refused, trial.probed)
    if log.look():
        since = since if verdict is None else verdict.since
        for entry in _calls(log, standing, since):
            if verdict is not None and entry.at > verdict.at:
                break
            heard.first = heard.first or entry.at
            heard.last = entry.at
            heard.answers[entry.status, entry.route] += 1
    return heard


def _calls(log: Log, standing: Standing, since: int) -> Iterator[Entry]:
    """The calls of the token that are judged, in the order of time."""
    wanted = activity_calls.Filter(token_id=standing.token_id, since=max(since, standing.since))
    return filter(standing.counts, activity_calls.replay(log, wanted))


def _counted(log: Log, calls: Iterator[Entry], keep_days: int) -> Iterator[Entry]:
    """Yield the calls but for denials of what the account had read before, which is looked up a slice at a time."""
    while some := list(islice(calls, activity_calls.SLICE)):
        known = log.read(partial(earlier_reads.read_before, some, keep_days)).result()
        yield from earlier_reads.without(some, known)
