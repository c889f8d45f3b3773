"""`musicsvc activity top`: show who called most in a window of whole hours."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from musicsvc.cli import output
from musicsvc.cli.activity import parse_time
from musicsvc.cli.options import TIME_HELP, option, show_examples
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat
from musicsvc.server.shapes import envelope
from musicsvc.store.abuse import enforcement
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity import top
from musicsvc.wording import quantity

app = typer.Typer()
EXAMPLES = show_examples("activity top", "activity top --since 12h --by address --json")
PLURALS = {"token": "tokens", "address": "addresses", "route": "routes"}
COLUMNS = ("calls", "refusals", "objects", "first_at", "last_at", "share", "near")

By = Annotated[Literal["token", "address", "route"], option("WHAT", "Group the calls by token, address or route.")]
Since = Annotated[str, option("TIME", f"Only calls since this time, from its full hour on. {TIME_HELP}")]
Until = Annotated[str | None, option("TIME", "Only calls before this time, until the end of its hour.")]
Limit = Annotated[int, option("N", "Only the first N.", min=1, max=10_000)]


@app.command("activity top", epilog=EXAMPLES)
def show(session: Session, by: By = "token", since: Since = "24h", until: Until = None, limit: Limit = 20) -> None:
    """Show who called most, by token, address or route. Who is near a limit comes first."""
    now = session.now
    first, end = parse_time(since, now, "--since") or 0, parse_time(until, now, "--until")
    if end is not None and end <= first:
        raise typer.BadParameter("--until must be later than --since. Correct one of them.")
    settings = session.settings()
    window = top.Window.around(first, end, now, settings.activity.keep_days)
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        found = top.find(log, by, window, settings, limit=limit)
        rows = [_row(caller, by) for caller in found.callers]
        ids = [row["token"] for row in rows if row["token"] is not None]
        known = {} if session.json else store.read(lambda: enforcement.token_statuses(ids)).result()
    if found.unsummed is not None:
        session.echo(f"Calls until {isoformat(found.unsummed)} are not summed yet: a running server does it.")
    if found.total > len(rows):
        session.echo(f"{quantity(found.total - len(rows), by, PLURALS[by])} more: --limit N.")
    if not session.json:
        for row, caller in zip(rows, found.callers, strict=True):
            status = known.get(row["token"])
            share = None if caller.share is None else f"{caller.share} %"
            row |= {"account": status and status.email, "share": share, "near": caller.near}
    names = (by, "account", *COLUMNS) if by == "token" else (by, *COLUMNS)
    output.print_table(session, rows, names)


def _row(caller: top.Caller, by: str) -> JSON:
    """Return the row in JSON. Calls without a token, or of no endpoint, have null in place of it."""
    key: JSON = {name: caller.key or None if name == by else None for name in PLURALS}
    if by == "token" and caller.key:
        key["token"] = int(caller.key)
    return key | envelope.picked(caller, "calls", "refusals", "objects", "first_at", "last_at")
