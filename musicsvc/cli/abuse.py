"""`musicsvc abuse`: apply the abuse rules to the calls in the activity log."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.activity import parse_time
from musicsvc.cli.options import TIME_HELP, TokenId, flag, group, option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat
from musicsvc.errors import NotFound
from musicsvc.server.shapes import envelope
from musicsvc.store.abuse import enforcement, rules
from musicsvc.store.abuse import replay as abuse_replay
from musicsvc.store.activity import log as activity_log

app = group(
    "abuse check --dry-run --since 7d",
    "abuse explain 7",
)

Since = Annotated[str | None, option("TIME", f"Only calls since this time. {TIME_HELP}")]


@app.command()
def check(
    session: Session,
    dry_run: Annotated[bool, flag("List the tokens to revoke without revoking them.", "--dry-run")] = False,
    since: Since = None,
) -> None:
    """Replay the rules over the activity log and revoke the tokens that break them."""
    settings = session.settings()
    first = parse_time(since, session.now, "--since") or 0
    found = []
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        replay = abuse_replay.violations(store, log, settings.abuse, first, keep_days=settings.activity.keep_days)
        for status, violation in replay:
            outcome = "already revoked" if status.revoked_at is not None else "would be revoked"
            if not dry_run and status.revoked_at is None:
                unit = partial(enforcement.enforce, status.token_id, violation, settings.abuse, now=session.now)
                result = store.write(unit).result()
                outcome = "revoked" if result.revoked else "reinstated meanwhile"
                outcome += ", account suspended" if result.suspended else ""
            found.append(_violation_json(status, violation, outcome))
    output.print_table(session, found, ("token_id", "email", "rule", "outcome", "reason", "last_at"))
    if not found:
        session.echo("No token breaks the rules.")


def _violation_json(status: enforcement.TokenStatus, violation: rules.Violation, outcome: str) -> JSON:
    return {
        "token_id": status.token_id,
        "email": status.email,
        "rule": violation.rule,
        "first_at": isoformat(violation.since),
        "last_at": isoformat(violation.at),
        "outcome": outcome,
        "reason": violation.reason,
    }


@app.command()
def explain(session: Session, token_id: TokenId, since: Since = None) -> None:
    """Show how close a token came to each threshold, and the responses to its calls."""
    settings = session.settings()
    first, keep_days = parse_time(since, session.now, "--since") or 0, settings.activity.keep_days
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        replay = abuse_replay.replay_token(store, log, settings.abuse, token_id, first, keep_days=keep_days)
    if replay is None:
        raise NotFound(f"There is no token {token_id}. musicsvc token list shows all tokens.")
    answers = [
        {"calls": calls, "status": status, "route": route or "(no endpoint)"}
        for (status, route), calls in Counter(replay.answers).most_common()
    ]
    facts = _replay_json(replay)
    if session.json:
        output.print_json({**facts, "answers": answers})
        return
    described = {"refusals": replay.refusals_text, "probes": replay.probes_text}
    output.print_record(session, {**facts, **described})
    typer.echo("\nCalls of the token:" if answers else "\nThe activity log has no calls of the token in this period.")
    if answers:
        output.print_table(session, answers, ("calls", "status", "route"))


def _replay_json(replay: abuse_replay.Replay) -> JSON:
    status, violation, rules = replay.status, replay.violation, replay.rules
    refused, probed = replay.refused, replay.probed
    return envelope.picked(status, "token_id", "email", "revoked_at", "revoked_reason") | {
        "calls_count_from_at": isoformat(status.since),
        "rule": violation and violation.rule,
        "verdict": violation and violation.reason,
        "first_at": envelope.format_time(replay.first),
        "last_at": envelope.format_time(replay.last),
        "refusals": {
            "most": refused.refused,
            "too_early": refused.early,
            "allowed": rules.refusals,
            "seconds": rules.refusal_seconds,
        },
        "probes": {
            "most": probed.resources,
            "calls": probed.calls,
            "successes": probed.successes,
            "allowed": rules.probes,
            "seconds": rules.probe_seconds,
            "success_percent": rules.probe_success_percent,
        },
    }
