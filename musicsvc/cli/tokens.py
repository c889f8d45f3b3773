"""`musicsvc token`: manage personal access tokens."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from musicsvc.cli import output, secret_input
from musicsvc.cli.options import Email, Limit, TokenId, group, option, refuse, search_option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import parse_duration
from musicsvc.errors import Failure, Forbidden
from musicsvc.server.shapes import envelope
from musicsvc.store import models
from musicsvc.store.accounts import api_access, tokens, users

app = group(
    "token create ada@example.test --name laptop",
    "token regenerate 7 --overlap 24h",
    'token revoke 7 --reason "laptop lost"',
)

OPERATOR = "revoked by an operator"


def token_json(token: models.Token, now: int) -> JSON:
    """Return a token as JSON for the output of `--json`, without the secret value."""
    found = {"id": token.id, "name": token.name, "email": token.user.email, "state": tokens.state(token, now)}
    found |= envelope.picked(token, "scope", "last_four", "created_at", "expires_at")
    found["former_value_expires_at"] = envelope.format_time(tokens.former_ends(token))
    return found | envelope.picked(token, "last_used_at", "revoked_at", "revoked_reason")


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@app.command()
def create(
    session: Session,
    name: Annotated[str, option("NAME", "The purpose of the token; 3 to 50 characters.")],
    email: Email = "",
    scope: Annotated[
        Literal["read", "read-write", "listen"],
        option("SCOPE", "read: only GET requests and exports. listen: only listens of a player."),
    ] = "read-write",
    days: Annotated[int, option("N", "The days until the token expires.", min=1, max=90)] = 90,
) -> None:
    """Create a token, valid for up to 90 days, and print its value. The account needs API access.

    A token of the scope listen is for a player (docs/players.md). It ends 90 days after its last use.
    """
    refuse({"--name": tokens.name_fault(name.strip()), "--days": tokens.days_fault(days, scope)})

    def unit() -> tuple[models.Token, str]:
        user = users.by_email(email)
        try:
            return tokens.create(user, name, days=days, scope=scope, now=session.now)
        except Forbidden as refusal:
            remedy = "user reinstate" if user.suspended_at else "access grant"
            raise Failure(f"{refusal.message} Run: musicsvc {remedy} {user.email}") from None

    _print_value(session, *session.write(unit))


@app.command("list")
def list_(
    session: Session,
    user: Annotated[str | None, option("EMAIL", "Only tokens of this account.")] = None,
    expiring: Annotated[
        int | None, option("DURATION", "Only valid tokens that expire within it, such as 14d.", parser=_duration)
    ] = None,
    search: Annotated[str | None, search_option("the name or e-mail")] = None,
    limit: Limit = None,
) -> None:
    """List tokens, oldest first, including expired and revoked ones."""
    now = session.now
    within = None if expiring is None else (now, now + expiring)
    output.print_list(
        session,
        lambda: tokens.list(None if user is None else users.by_email(user), limit=limit, text=search, expiring=within),
        lambda token: token_json(token, now),
        ("id", "name", "email", "state", "scope", "revoked_reason", "expires_at", "last_used_at", "last_four"),
    )


@app.command()
def revoke(
    session: Session,
    token_id: TokenId,
    reason: Annotated[str, option("TEXT", "The reason, shown by `token list`.")] = OPERATOR,
) -> None:
    """Revoke a token: requests with it get 401 at once."""
    given = reason.strip() or OPERATOR
    refuse({"--reason": api_access.problems({"reason": given})["reason"]})
    token = session.write(lambda: tokens.revoke(token_id, given, now=session.now), urgent=True)
    message = f"Token {token.id} of {token.user.email} is revoked."
    if token.revoked_reason != given:
        message += f" It was before, and the earlier reason stays: {token.revoked_reason}."
    output.print_result(session, message, token_json(token, session.now))


@app.command()
def reinstate(session: Session, token_id: TokenId) -> None:
    """Undo the revocation of a token."""
    token = session.write(lambda: tokens.reinstate(token_id, now=session.now))
    message = f"Token {token.id} of {token.user.email} is {tokens.state(token, session.now)}."
    if token.user.suspended_at is not None:
        message += f" The account is suspended. Run: musicsvc user reinstate {token.user.email}"
    output.print_result(session, message, token_json(token, session.now))


@app.command()
def regenerate(
    session: Session,
    token_id: TokenId,
    overlap: Annotated[
        int | None,
        option("DURATION", "How long the old value is accepted, such as 12h; at most 24h.", parser=_duration),
    ] = None,
) -> None:
    """Give a token a new value, valid for 90 days, and print it. The old value is refused at once, or later."""
    refuse({"--overlap": tokens.LONG_OVERLAP if (overlap or 0) > tokens.LONGEST_OVERLAP else None})
    written = session.write(lambda: tokens.regenerate(token_id, overlap=overlap or 0, now=session.now), urgent=True)
    _print_value(session, *written)


@app.command()
def inspect(session: Session) -> None:
    """Show the details of a token, and why it is refused. Its value is read from a prompt or from stdin."""
    value = secret_input.prompt_once("Token") if sys.stdin.isatty() else secret_input.read_stdin("token")
    if not tokens.well_formed(value):
        raise Failure("This is not a valid musicsvc token. A token is msvc_ and 46 letters and digits; copy all of it.")
    token = session.read(lambda: tokens.find_by_value(value))
    if token is None:
        raise Failure(
            "This token is not in the database. It comes from another installation, or has been regenerated."
            " musicsvc token list shows all tokens."
        )
    now = session.clock.now()
    output.print_record(session, token_json(token, now) | {"refused_because": tokens.refusal(token, value, now)})


def _print_value(session: Session, token: models.Token, value: str) -> None:
    """Print the token's secret value alone on stdout, so that it can be piped. In a terminal, add a hint on stderr."""
    if session.json:
        expires = envelope.format_time(token.expires_at)
        output.print_json({"id": token.id, "name": token.name, "token": value, "expires_at": expires})
        return
    if sys.stdout.isatty():
        session.echo(f"Token {token.id} for {token.user.email}. Keep it safe: it is not shown again.")
    typer.echo(value)
