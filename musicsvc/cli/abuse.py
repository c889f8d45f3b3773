"""`musicsvc abuse`: what the rules on abuse make of the log of calls."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.activity import TIME, instant
from musicsvc.cli.output import JSON, AsJson
from musicsvc.cli.session import Session
from musicsvc.cli.tokens import Id
from musicsvc.errors import NotFound

if TYPE_CHECKING:
    from musicsvc.store.abuse.enforcement import TokenStatus
    from musicsvc.store.abuse.replay import Replay
    from musicsvc.store.abuse.rules import Violation

app = typer.Typer(help="Abuse: judge the log of calls, explain what was decided.", no_args_is_help=True)

Since = Annotated[str | None, typer.Option(metavar="TIME", help=f"Only calls from then on. {TIME}", show_default=False)]


@app.command()
def check(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show it; nothing is revoked.")] = False,
    since: Since = None,
    json: AsJson = False,
) -> None:
    """Replay the rules over the log of calls, and revoke the tokens that break them."""
    from functools import partial

    from musicsvc.store.abuse import enforcement
    from musicsvc.store.abuse import replay as abuse_replay
    from musicsvc.store.activity import log as activity_log

    session = Session.from_context(context)
    settings, now = session.settings(), session.clock.now()
    first = instant(since, now, "--since") or 0
    found = []
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        replay = abuse_replay.violations(store, log, settings.abuse, first, keep_days=settings.activity.keep_days)
        for status, violation in replay:
            outcome = "already revoked" if status.revoked_at is not None else "would be revoked"
            if not dry_run and status.revoked_at is None:
                unit = partial(enforcement.enforce, status.token_id, violation, settings.abuse, now=now)
                result = store.write(unit).result()
                outcome = "revoked" if result.revoked else "reinstated meanwhile"
                outcome += ", account suspended" if result.suspended else ""
            found.append(_decided(status, violation, outcome))
    output.print_table(session, found, ("token_id", "email", "rule", "outcome", "reason", "last_at"), json=json)
    if not found:
        session.echo("No token breaks the rules.")


def _decided(status: "TokenStatus", violation: "Violation", outcome: str) -> JSON:
    return {
        "token_id": status.token_id,
        "email": status.email,
        "rule": violation.rule,
        "first_at": output.format_time(violation.since),
        "last_at": output.format_time(violation.at),
        "outcome": outcome,
        "reason": violation.reason,
    }


@app.command()
def explain(context: typer.Context, token_id: Id, since: Since = None, json: AsJson = False) -> None:
    """Show how near a token came to each threshold, or by which calls it passed one."""
    from musicsvc.store.abuse import replay as abuse_replay
    from musicsvc.store.activity import log as activity_log

    session = Session.from_context(context)
    settings, now = session.settings(), session.clock.now()
    first, keep_days = instant(since, now, "--since") or 0, settings.activity.keep_days
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        heard = abuse_replay.replay_token(store, log, settings.abuse, token_id, first, keep_days=keep_days)
    if heard is None:
        raise NotFound(f"There is no token {token_id}.")
    answers = [
        {"calls": calls, "status": status, "route": route or "(no endpoint)"}
        for (status, route), calls in Counter(heard.answers).most_common()
    ]
    facts = _facts(heard)
    if json:
        output.print_json({**facts, "answers": answers})
        return
    output.print_record(
        {key: value for key, value in facts.items() if not isinstance(value, dict)} | _told(facts), json=False
    )
    typer.echo("\nIts calls in that time:" if answers else "\nThe log holds no calls of it in that time.")
    if answers:
        output.print_table(session, answers, ("calls", "status", "route"), json=False)


def _facts(heard: "Replay") -> JSON:
    status, violation, refused, probed, rules = heard.status, heard.violation, heard.refused, heard.probed, heard.rules
    return {
        "token_id": status.token_id,
        "email": status.email,
        "revoked_at": output.format_time(status.revoked_at),
        "revoked_reason": status.revoked_reason,
        "calls_count_from_at": output.format_time(status.since),
        "rule": violation and violation.rule,
        "verdict": violation and violation.reason,
        "first_at": output.format_time(heard.first),
        "last_at": output.format_time(heard.last),
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


def _told(facts: JSON) -> JSON:
    """The figures against their thresholds, a line each."""
    refused, probed = facts["refusals"], facts["probes"]
    return {
        "refusals": f"{refused['most']} of {refused['allowed']} by 429 in {refused['seconds']} s without a pause"
        f" as told; {refused['too_early']} came too early",
        "probes": f"{probed['most']} of {probed['allowed']} different resources denied in {probed['seconds']} s;"
        f" {probed['successes']} of {probed['calls']} calls successful, {probed['success_percent']} % would do",
    }
