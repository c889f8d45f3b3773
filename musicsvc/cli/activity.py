"""`musicsvc activity`: the log of calls and the security events."""

import re
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from musicsvc.cli.output import AsJson
from musicsvc.cli.session import Session
from musicsvc.clock import SECOND, parse

if TYPE_CHECKING:
    from musicsvc.store.accounts import security_events
    from musicsvc.store.activity import calls
    from musicsvc.store.engine.store import Store

app = typer.Typer()
POLL_SECONDS = 0.3
UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
TIME = "A time (2026-01-31T12:00:00Z), or how long ago (90s, 15m, 2h, 7d)."
ID = 2**63 - 1

Account = Annotated[str | None, typer.Option(metavar="EMAIL", help="Only of this account.", show_default=False)]
TokenId = Annotated[
    int | None, typer.Option("--token", metavar="ID", min=1, max=ID, help="Only of this token.", show_default=False)
]
Address = Annotated[str | None, typer.Option(help="Only calls from this address.", show_default=False)]
Status = Annotated[str | None, typer.Option(help="Only calls answered so: 429, or 4xx.", show_default=False)]
Method = Annotated[str | None, typer.Option(help="Only calls of this method.", show_default=False)]
Route = Annotated[str | None, typer.Option(help="Only calls whose route holds this text.", show_default=False)]
Request = Annotated[
    str | None, typer.Option(metavar="ID", help="Only the call of this request id.", show_default=False)
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help=f"From then on. {TIME}", show_default=False)]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Before then, written alike.", show_default=False)]
Kind = Annotated[Literal["all", "calls", "events"], typer.Option(help="What is shown.")]
Limit = Annotated[int, typer.Option(min=1, max=1_000_000, help="The newest so many.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl+C; with --json an object a line.")
]


@app.command()
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
    """Show the log of calls and the security events, newest last."""
    from musicsvc.cli.activity_lines import Shown
    from musicsvc.store.activity import log as activity_log
    from musicsvc.store.activity.timeline import History

    session = Session.from_context(context)
    settings, now = session.settings(), session.clock.now()
    of_calls = {
        "address": address,
        "method": method and method.upper(),
        "route": route,
        "request_id": request,
        "statuses": _statuses(status),
    }
    of_both = {"token_id": token_id, **_range(since, until, now, follow=follow)}
    with session.store() as store, activity_log.build(settings.store_url, settings.activity.file) as log:
        wanted = _wanted(kind, of_calls, {**of_both, "account_id": _account(store, account)})
        shown = Shown(store, json=json, lines=follow)
        history = History(store, log, *wanted)
        shown.show(history.newest(limit))
        while follow:
            time.sleep(POLL_SECONDS)
            shown.show(history.later())


def _wanted(
    kind: str, of_calls: dict[str, Any], of_both: dict[str, Any]
) -> "tuple[calls.Filter | None, security_events.Filter | None]":
    """What is wanted of calls and of events; what only calls have leaves events out."""
    from musicsvc.store.accounts import security_events
    from musicsvc.store.activity import calls

    narrow = any(value is not None for value in of_calls.values())
    if narrow and kind == "events":
        raise typer.BadParameter("--address, --status, --method, --route and --request are about calls.")
    return (
        None if kind == "events" else calls.Filter(**of_calls, **of_both),
        None if narrow or kind == "calls" else security_events.Filter(**of_both),
    )


def _range(since: str | None, until: str | None, now: int, *, follow: bool) -> dict[str, int | None]:
    """From when until when; wrong usage where nothing can ever be in it."""
    if follow and until is not None:
        raise typer.BadParameter("--follow and --until exclude each other.")
    first, end = instant(since, now, "--since"), instant(until, now, "--until")
    if first is not None and end is not None and end <= first:
        raise typer.BadParameter("--until must be later than --since.")
    return {"since": first, "until": end}


def _account(store: "Store", email: str | None) -> int | None:
    from musicsvc.store.accounts import users

    return None if email is None else store.read(lambda: users.by_email(email)).result().id


def _statuses(text: str | None) -> tuple[int, int] | None:
    """The first and the last status of `429` or `4xx`."""
    if text is None:
        return None
    if not re.fullmatch("[1-5]([0-9]{2}|xx)", text.lower()):
        raise typer.BadParameter("A status is written 429, or 4xx for all of its kind.", param_hint="--status")
    return int(text.lower().replace("x", "0")), int(text.lower().replace("x", "9"))


def instant(text: str | None, now: int, option: str) -> int | None:
    """The instant of a time, or of so long ago."""
    if text is None:
        return None
    if ago := re.fullmatch("([0-9]{1,9})([smhd])", text):
        return now - int(ago[1]) * UNITS[ago[2]] * SECOND
    try:
        return parse(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time. {TIME}", param_hint=option) from None
