"""`musicsvc token`: personal access tokens."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output, secret_input
from musicsvc.cli.output import JSON, AsJson, Limit
from musicsvc.cli.session import Session
from musicsvc.cli.users import Email
from musicsvc.errors import Failure, Forbidden

if TYPE_CHECKING:
    from musicsvc.store.models import Token

app = typer.Typer(help="Access tokens: make, list, revoke.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(metavar="ID", min=1, max=2**63 - 1, help="The token's id, from `token list`.")]


def shown(token: "Token", now: int) -> JSON:
    """A token as the terminal shows it; its value is nowhere."""
    from musicsvc.store.accounts import tokens

    return {
        "id": token.id,
        "name": token.name,
        "email": token.user.email,
        "state": tokens.state(token, now),
        "last_four": token.last_four,
        "created_at": output.format_time(token.created_at),
        "expires_at": output.format_time(token.expires_at),
        "last_used_at": output.format_time(token.last_used_at),
        "revoked_at": output.format_time(token.revoked_at),
        "revoked_reason": token.revoked_reason,
    }


@app.command()
def create(
    context: typer.Context,
    email: Email,
    name: Annotated[str, typer.Option(help="What the token is for; 3 to 50 characters.")],
    json: AsJson = False,
) -> None:
    """Make a token for 90 days. It is printed this once; the account needs API access."""
    from musicsvc.store.accounts import tokens, users

    session = Session.from_context(context)
    now = session.clock.now()

    def unit() -> "tuple[Token, str]":
        user = users.by_email(email)
        try:
            return tokens.create(user, name, now=now)
        except Forbidden as refusal:
            way = "user reinstate" if user.suspended_at else "access grant"
            raise Failure(f"{refusal.message} Run: musicsvc {way} {user.email}") from None

    _hand_over(session, *session.write(unit), json=json)


@app.command("list")
def list_(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(metavar="EMAIL", help="Only this account's tokens.")] = None,
    search: Annotated[str | None, output.search_option("name or e-mail")] = None,
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """List tokens, oldest first, expired and revoked ones too."""
    from musicsvc.store.accounts import tokens, users

    session = Session.from_context(context)
    now = session.clock.now()
    found = session.read(lambda: tokens.list(None if user is None else users.by_email(user), limit=limit, text=search))
    columns = ("id", "name", "email", "state", "revoked_reason", "expires_at", "last_used_at", "last_four")
    output.print_table(session, [shown(token, now) for token in found], columns, json=json)


@app.command()
def revoke(
    context: typer.Context,
    token_id: Id,
    reason: Annotated[str, typer.Option(help="Kept, and shown by `token list`.")] = "revoked by an operator",
    json: AsJson = False,
) -> None:
    """Revoke a token: it answers 401 from the next request on."""
    from musicsvc.store.accounts import tokens

    session = Session.from_context(context)
    now = session.clock.now()
    token = session.write_urgently(lambda: tokens.revoke(token_id, reason, now=now))
    _tell(session, token, f"Token {token.id} of {token.user.email} is revoked.", json=json)


@app.command()
def reinstate(context: typer.Context, token_id: Id, json: AsJson = False) -> None:
    """Take a token's revocation back."""
    from musicsvc.store.accounts import tokens

    session = Session.from_context(context)
    now = session.clock.now()
    token = session.write(lambda: tokens.reinstate(token_id, now=now))
    state = tokens.state(token, now)
    message = f"Token {token.id} of {token.user.email} is {state}."
    if token.user.suspended_at is not None:
        message += f" The account is suspended. Run: musicsvc user reinstate {token.user.email}"
    _tell(session, token, message, json=json)


@app.command()
def regenerate(context: typer.Context, token_id: Id, json: AsJson = False) -> None:
    """Give a token a new value for 90 days, printed this once; the old value ends at once."""
    from musicsvc.store.accounts import tokens

    session = Session.from_context(context)
    now = session.clock.now()
    _hand_over(session, *session.write_urgently(lambda: tokens.regenerate(token_id, now=now)), json=json)


@app.command()
def inspect(context: typer.Context, json: AsJson = False) -> None:
    """Show what a token is. It is read from stdin, or asked for at a terminal."""
    from musicsvc.store.accounts import tokens

    session = Session.from_context(context)
    value = secret_input.read_stdin("token") if not sys.stdin.isatty() else secret_input.prompt_once("Token")
    if not tokens.well_formed(value):
        raise Failure("This is no token of musicsvc: it must be msvc_ and 46 letters and digits, copied whole.")
    token = session.read(lambda: tokens.find_by_value(value))
    if token is None:
        raise Failure("The token is well formed, but unknown here: made elsewhere, or regenerated since.")
    output.print_record(shown(token, session.clock.now()), json=json)


def _hand_over(session: Session, token: "Token", value: str, *, json: bool) -> None:
    """The value alone on stdout, so that it can be piped; the hint is for a person at a terminal."""
    if json:
        expires = output.format_time(token.expires_at)
        output.print_json({"id": token.id, "name": token.name, "token": value, "expires_at": expires})
        return
    if sys.stdout.isatty():
        session.echo(f"Token {token.id} for {token.user.email}. Keep it safe: it is not shown again.")
    typer.echo(value)


def _tell(session: Session, token: "Token", message: str, *, json: bool) -> None:
    session.echo(message)
    if json:
        output.print_json(shown(token, session.clock.now()))
