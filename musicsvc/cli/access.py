"""`musicsvc access`: who may use the API, and who asked to."""

import re
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output
from musicsvc.cli.output import JSON, AsJson, Limit
from musicsvc.cli.session import Session
from musicsvc.cli.users import Email
from musicsvc.cli.users import shown as shown_user
from musicsvc.errors import Failure, NotFound

if TYPE_CHECKING:
    from musicsvc.store.accounts.api_access import Entry
    from musicsvc.store.models import AccessRequest, User

app = typer.Typer(help="API access: grant, revoke, decide on requests.", no_args_is_help=True)

Asked = Annotated[str, typer.Argument(metavar="EMAIL|ID", help="Who asked, or the request's id from `access list`.")]


def shown(entry: "Entry") -> JSON:
    """A request, or an account with access that never asked, as the terminal shows it."""
    asked, user = entry.request, entry.user
    return {
        "request_id": asked and asked.id,
        "email": asked.email if asked else user and user.email,
        "user_id": user and user.id,
        "api_access": bool(user and user.api_access),
        "reports_plays": bool(user and user.reports_plays),
        "state": asked and asked.state,
        "use_case": asked and asked.use_case,
        "volume": asked and asked.volume,
        "organization": asked and asked.organization,
        "reason": asked and asked.reason,
        "requested_at": output.format_time(asked.created_at if asked else None),
        "decided_at": output.format_time(asked.decided_at if asked else None),
    }


def shown_request(asked: "AccessRequest") -> JSON:
    """A request as the terminal shows it."""
    return {
        "id": asked.id,
        "email": asked.email,
        "state": asked.state,
        "use_case": asked.use_case,
        "volume": asked.volume,
        "organization": asked.organization,
        "reason": asked.reason,
        "requested_at": output.format_time(asked.created_at),
        "decided_at": output.format_time(asked.decided_at),
    }


@app.command()
def grant(
    context: typer.Context,
    email: Email,
    plays: Annotated[bool, typer.Option("--plays", help="Let it also report plays of other listeners.")] = False,
    json: AsJson = False,
) -> None:
    """Give an account API access; its tokens work at once."""
    from musicsvc.store.accounts import api_access, users

    session = Session.from_context(context)
    now = session.clock.now()

    def unit() -> "User":
        user = users.by_email(email)
        api_access.grant(user, plays=plays, now=now)
        return user

    try:
        user = session.write(unit)
    except NotFound as missing:
        raise Failure(f"{missing.message} Run: musicsvc user create {quote(email)}") from None
    also = " and may report plays of other listeners" if user.reports_plays else ""
    session.echo(f"{user.email} has API access{also}.")
    if json:
        output.print_json(shown_user(user))


@app.command()
def revoke(context: typer.Context, email: Email, json: AsJson = False) -> None:
    """Take API access away, reporting for others too; tokens stay and answer 403 until it is granted again."""
    from musicsvc.store.accounts import api_access, users

    session = Session.from_context(context)
    now = session.clock.now()

    def unit() -> "User":
        user = users.by_email(email)
        api_access.revoke(user, now=now)
        return user

    user = session.write_urgently(unit)
    session.echo(f"{user.email} has no API access any more.")
    if json:
        output.print_json(shown_user(user))


@app.command("list")
def list_(
    context: typer.Context,
    search: Annotated[str | None, output.search_option("e-mail, name, organization or use case")] = None,
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """List who asked for access, then who has it and never asked; oldest first."""
    from musicsvc.store.accounts import api_access

    session = Session.from_context(context)
    found = [shown(entry) for entry in session.read(lambda: api_access.list(limit=limit, text=search))]
    columns = ("request_id", "email", "state", "api_access", "organization", "use_case", "volume", "requested_at")
    output.print_table(session, found, (*columns, "reason", "reports_plays"), json=json)


@app.command()
def request(
    context: typer.Context,
    email: Email,
    use_case: Annotated[str, typer.Option(help="What the API is wanted for.")],
    volume: Annotated[str, typer.Option(help="How many requests are expected.")],
    organization: Annotated[str, typer.Option(help="Who asks.")],
    json: AsJson = False,
) -> None:
    """Note a request for access; the address needs no account yet."""
    from musicsvc.store.accounts import api_access

    session = Session.from_context(context)
    now = session.clock.now()
    asked = session.write(lambda: api_access.request(email, use_case, volume, organization, now=now))
    session.echo(f"Request {asked.id} by {asked.email} is pending.")
    if json:
        output.print_json(shown_request(asked))


@app.command()
def approve(context: typer.Context, asked: Asked, json: AsJson = False) -> None:
    """Grant what was asked for; an address without an account gets one without a password."""
    from musicsvc.store.accounts import api_access

    session = Session.from_context(context)
    now = session.clock.now()
    decided, user, made = session.write(lambda: api_access.approve(_target(asked), now=now))
    account = "was made for it, without a password" if made else "was there already"
    session.echo(f"Request {decided.id} is approved: {user.email} has API access. Account {user.id} {account}.")
    if json:
        output.print_json(shown_request(decided))


@app.command()
def deny(
    context: typer.Context,
    asked: Asked,
    reason: Annotated[str, typer.Option(help="Kept, and shown by `access list`.")],
    json: AsJson = False,
) -> None:
    """Refuse what was asked for."""
    from musicsvc.store.accounts import api_access

    session = Session.from_context(context)
    now = session.clock.now()
    decided = session.write(lambda: api_access.deny(_target(asked), reason, now=now))
    session.echo(f"Request {decided.id} by {decided.email} is denied.")
    if json:
        output.print_json(shown_request(decided))


def _target(asked: str) -> int | str:
    """The id where only digits are given, else the e-mail."""
    return int(asked) if re.fullmatch("[1-9][0-9]{0,17}", asked) else asked
