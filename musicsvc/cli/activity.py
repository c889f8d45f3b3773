"""`musicsvc activity`: show API calls and security events."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musicsvc.cli.options import LARGEST_ID, TIME_HELP, AsJson, option, show_examples
from musicsvc.cli.session import Session
from musicsvc.clock import parse_time_or_age

if TYPE_CHECKING:
    from musicsvc.store.activity import calls
    from musicsvc.store.engine.store import Store
    from musicsvc.store.security import security_events

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
Follow = Annotated[
    bool,
    typer.Option("--follow", "-f", help="Continue with new entries until Ctrl+C; with --json, one per line."),
]


@app.command(epilog=EXAMPLES)
def activity(  # noqa: PLR0917 - Typer reads options from parameters
    context: typer.Context,
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
    json: AsJson = False,
) -> None:
    """Show API calls and security events, newest last. Times are in UTC."""
    from musicsvc.cli.activity_lines import Printer
    from musicsvc.store.activity import log as activity_log
    from musicsvc.store.activity.timeline import Timeline

    session, now = Session.begin(context)
    settings = session.settings()
    call_filters = {"address": address, "route": route, "request_id": request, "statuses": _statuses(status)}
    call_filters["method"] = method and method.upper()
    common_filters = {"token_id": token_id, **_range(since, until, now, follow=follow)}
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        filters = _filters(kind, call_filters, {**common_filters, "account_id": _account(store, account)})
        printer = Printer(store, json=json, lines=follow)
        timeline = Timeline(store, log, *filters)
        printer.print(timeline.newest(limit))
        while follow:
            time.sleep(POLL_SECONDS)
            printer.print(timeline.later())


def _filters(
    kind: str, call_filters: dict[str, Any], common_filters: dict[str, Any]
) -> "tuple[calls.Filter | None, security_events.Filter | None]":
    """Return the filter for API calls and the filter for security events. A filter is None if its kind is not shown."""
    from musicsvc.store.activity import timeline

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


def _account(store: "Store", email: str | None) -> int | None:
    from musicsvc.store.accounts import users

    return None if email is None else store.read(lambda: users.by_email(email)).result().id


def _statuses(text: str | None) -> tuple[int, int] | None:
    """Parse a status (`429`) or class (`4xx`) into the lowest and highest status, both included. None stays None."""
    from musicsvc.store.activity import calls

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
