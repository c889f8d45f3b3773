"""`musicsvc activity`: show API calls and security events."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from typing import Annotated, Any, Literal

import typer

from musicsvc.cli import output
from musicsvc.cli.options import LARGEST_ID, TIME_HELP, flag, option, show_examples
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat, parse_time_or_age
from musicsvc.store.accounts import users
from musicsvc.store.activity import calls, timeline
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine import store as stores
from musicsvc.store.security import security_events
from musicsvc.wording import escape_controls, quantity

app = typer.Typer()
EXAMPLES = show_examples(
    "activity --user ada@example.test --since 2h", "activity --status 4xx --limit 20", "activity --follow --json"
)
POLL_SECONDS = 0.3

Account = Annotated[str | None, option("EMAIL", "Only entries of this account.", "--user", "--account")]
TokenId = Annotated[int | None, option("ID", "Only entries of this token.", "--token", min=1, max=LARGEST_ID)]
Address = Annotated[str | None, option("IP", "Only calls from this address.")]
Status = Annotated[str | None, option("STATUS", "Only calls with this status: 429, or 4xx.")]
Method = Annotated[str | None, option("METHOD", "Only calls with this HTTP method.")]
Route = Annotated[str | None, option("TEXT", "Only calls whose route contains TEXT.")]
Request = Annotated[str | None, option("ID", "Only the call with this request id.")]
Since = Annotated[str | None, option("TIME", f"Only entries since this time. {TIME_HELP}")]
Until = Annotated[str | None, option("TIME", "Only entries before this time.")]
Kind = Annotated[Literal["all", "calls", "events"], option("KIND", "The kind of entries: all, calls or events.")]
Limit = Annotated[int, option("N", "Only the newest N entries.", min=1, max=1_000_000)]
Follow = Annotated[bool, flag("Continue with new entries until Ctrl+C; with --json, one per line.", "--follow", "-f")]


@app.command(epilog=EXAMPLES)
def activity(  # noqa: PLR0917 - Typer reads options from parameters
    session: Session,
    account: Account = None,
    token_id: TokenId = None,
    address: Address = None,
    status: Status = None,
    method: Method = None,
    route: Route = None,
    request: Request = None,
    since: Since = None,
    until: Until = None,
    kind: Kind = "all",
    limit: Limit = 100,
    follow: Follow = False,
) -> None:
    """Show API calls and security events, newest last. Times are in UTC."""
    settings = session.settings()
    call_filters = {"address": address, "route": route, "request_id": request, "statuses": _statuses(status)}
    call_filters["method"] = method and method.upper()
    common_filters = {"token_id": token_id, **_range(since, until, session.now, follow=follow)}
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        user_id = None if account is None else store.read(lambda: users.by_email(account)).result().id
        filters = _filters(kind, call_filters, {**common_filters, "account_id": user_id})
        printer = _Printer(store, json=session.json, lines=follow)
        shown = timeline.Timeline(store, log, *filters)
        found = shown.newest(limit)
        printer.print(found)
        if not found and not follow:
            session.echo("No such entries.")
        while follow:
            time.sleep(POLL_SECONDS)
            printer.print(shown.later())


def _filters(
    kind: str, call_filters: dict[str, Any], common_filters: dict[str, Any]
) -> tuple[calls.Filter | None, security_events.Filter | None]:
    """Return the filter for API calls and the filter for security events. A filter is None if its kind is not shown."""
    if kind == "events" and any(value is not None for value in call_filters.values()):
        raise typer.BadParameter("--address, --status, --method, --route and --request need --kind calls or all.")
    return timeline.build_filters(kind, call_filters, common_filters)


def _range(since: str | None, until: str | None, now: int, *, follow: bool) -> dict[str, int | None]:
    """Parse both times. Raises BadParameter if `until` is not after `since`, or is used together with `follow`."""
    if follow and until is not None:
        raise typer.BadParameter("--follow and --until cannot be used together. Remove one of them.")
    first, end = parse_time(since, now, "--since"), parse_time(until, now, "--until")
    if first is not None and end is not None and end <= first:
        raise typer.BadParameter("--until must be later than --since. Correct one of them.")
    return {"since": first, "until": end}


def _statuses(text: str | None) -> tuple[int, int] | None:
    """Parse a status (`429`) or class (`4xx`) into the lowest and highest status, both included. None stays None."""
    try:
        return None if text is None else calls.parse_statuses(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--status") from None


def parse_time(text: str | None, now: int, name: str) -> int | None:
    """Parse an ISO 8601 time, or an age such as `24h` before `now`. `name`: the option, for error messages."""
    if text is None:
        return None
    try:
        return parse_time_or_age(text, now)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a valid time. {TIME_HELP}", param_hint=name) from None


class _Printer:
    """Prints API calls and security events. Reads the e-mail address of each account only once."""

    def __init__(self, store: stores.Store, *, json: bool, lines: bool) -> None:
        """`json`: print a JSON array instead of text. `lines`: if `json` is set, print one JSON object per line."""
        self._store = store
        self._json = json
        self._lines = lines
        self._emails: dict[int, str] = {}

    def print(self, found: list[calls.Entry | security_events.Event]) -> None:
        actors = {row.actor_id for row in found if isinstance(row, security_events.Event)}
        named = {row.account_id for row in found} | actors
        if unknown := {each for each in named if each is not None} - self._emails.keys():
            self._emails |= self._store.read(lambda: users.emails(unknown)).result()
        if not self._json:
            text = "".join(escape_controls(self._line(row)) + "\n" for row in found)
        elif self._lines:
            text = "".join(jsonlib.dumps(self._record(row)) + "\n" for row in found)
        else:
            output.print_json([self._record(row) for row in found])
            return
        typer.echo(text, nl=False)
        sys.stdout.flush()

    def _email(self, account_id: int | None) -> str | None:
        return None if account_id is None else self._emails.get(account_id)

    def _name(self, account_id: int) -> str:
        return self._email(account_id) or f"account {account_id}"

    def _record(self, row: calls.Entry | security_events.Event) -> JSON:
        who = {"account": self._email(row.account_id)}
        if not isinstance(row, calls.Entry):
            who["actor_account"] = self._email(row.actor_id)
        kind = "call" if isinstance(row, calls.Entry) else "event"
        return {"type": kind, **row._asdict(), "at": isoformat(row.at), **who}

    def _line(self, row: calls.Entry | security_events.Event) -> str:
        moment = isoformat(row.at)[:23].replace("T", " ")
        who = "-" if row.account_id is None else self._name(row.account_id)
        token = "" if row.token_id is None else f" token {row.token_id}"
        if not isinstance(row, calls.Entry):
            reason = (row.reason or "").removeprefix(
                f"{row.actor}: "
            )  # reasons from the abuse monitor begin with its name
            why = f": {reason}" if reason else ""
            by = row.actor if row.actor_id is None else f"{row.actor} {self._name(row.actor_id)}"
            return f"{moment}  {row.kind}  {who}{token}  by {by}{why}"
        if row.is_count:
            more = f"{quantity(row.calls, 'more call')} without a token in this minute"
            return f"{moment}  {row.status} {more}  {row.address}  {row.size} bytes"
        what = row.route or "(no endpoint)"
        about = f"  {row.resource}" if row.resource else ""
        wait = "" if row.retry_after is None else f"  retry after {row.retry_after} s"
        cost = f"{row.milliseconds:.1f} ms  {row.size} bytes{wait}  {row.request_id}"
        return f"{moment}  {row.status} {row.method or '-':6} {what}{about}  {who}{token}  {row.address}  {cost}"
