"""`musicsvc user`: accounts."""

from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output, secret_input
from musicsvc.cli.output import JSON, AsJson, Limit
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid

if TYPE_CHECKING:
    from musicsvc.config import Settings
    from musicsvc.store.models import User

app = typer.Typer(help="Accounts: make, show, suspend.", no_args_is_help=True)

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The account's e-mail; case does not matter.")]
PasswordStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")]


def shown(user: "User") -> JSON:
    """An account as the terminal shows it."""
    return {
        "id": user.id,
        "email": user.email,
        "display_name": user.display_name,
        "admin": user.admin,
        "api_access": user.api_access,
        "reports_plays": user.reports_plays,
        "has_password": user.password_hash is not None,
        "suspended_at": output.format_time(user.suspended_at),
        "suspended_reason": user.suspended_reason,
        "created_at": output.format_time(user.created_at),
    }


@app.command()
def create(
    context: typer.Context,
    email: Email,
    display_name: Annotated[str | None, typer.Option(help="Default: the part before the @.")] = None,
    password_stdin: PasswordStdin = False,
    admin: Annotated[bool, typer.Option("--admin", help="Let it administer the service.")] = False,
    json: AsJson = False,
) -> None:
    """Make an account. Without --password-stdin it has no password until `user password`."""
    from musicsvc.store.accounts import users

    session = Session.from_context(context)
    hashed = _hashed(secret_input.read_stdin("password"), email, session.settings()) if password_stdin else None
    now = session.clock.now()
    user = session.write(
        lambda: users.create(email, display_name=display_name, password_hash=hashed, admin=admin, now=now)
    )
    _tell(session, user, f"Account {user.id} made for {user.email}.", json=json)


@app.command()
def password(context: typer.Context, email: Email, password_stdin: PasswordStdin = False, json: AsJson = False) -> None:
    """Set an account's password, asked for at the terminal or read from stdin."""
    from musicsvc.store.accounts import users

    session = Session.from_context(context)
    session.read(lambda: users.by_email(email))
    typed = (
        secret_input.read_stdin("password")
        if password_stdin
        else secret_input.prompt_twice("New password", "--password-stdin")
    )
    hashed = _hashed(typed, email, session.settings())
    now = session.clock.now()

    def unit() -> "User":
        user = users.by_email(email)
        users.set_password(user, hashed, now=now)
        return user

    user = session.write(unit)
    _tell(session, user, f"Password of {user.email} set.", json=json)


@app.command("list")
def list_(
    context: typer.Context,
    search: Annotated[str | None, output.search_option("e-mail or display name")] = None,
    limit: Limit = None,
    json: AsJson = False,
) -> None:
    """List accounts, oldest first."""
    from musicsvc.store.accounts import users

    session = Session.from_context(context)
    found = [shown(user) for user in session.read(lambda: users.list(limit=limit, text=search))]
    columns = ("id", "email", "display_name", "api_access", "suspended_at", "admin", "reports_plays", "created_at")
    output.print_table(session, found, columns, json=json)


@app.command()
def show(context: typer.Context, email: Email, json: AsJson = False) -> None:
    """Show one account."""
    from musicsvc.store.accounts import users

    output.print_record(shown(Session.from_context(context).read(lambda: users.by_email(email))), json=json)


@app.command()
def suspend(
    context: typer.Context,
    email: Email,
    reason: Annotated[str | None, typer.Option(help="Kept, and shown by `user show`.")] = None,
    json: AsJson = False,
) -> None:
    """Suspend an account: its tokens answer 403 from the next request on."""
    from musicsvc.store.accounts import users

    session = Session.from_context(context)
    now = session.clock.now()

    def unit() -> "User":
        user = users.by_email(email)
        users.suspend(user, now=now, reason=reason)
        return user

    user = session.write_urgently(unit)
    _tell(session, user, f"{user.email} is suspended.", json=json)


@app.command()
def reinstate(context: typer.Context, email: Email, json: AsJson = False) -> None:
    """Open a suspended account again; its tokens work at once."""
    from musicsvc.store.accounts import users

    session = Session.from_context(context)
    now = session.clock.now()

    def unit() -> "User":
        user = users.by_email(email)
        users.reinstate(user, now=now)
        return user

    user = session.write(unit)
    _tell(session, user, f"{user.email} is no longer suspended.", json=json)


def report_shared_mailboxes(session: Session) -> list[JSON]:
    """Warn of accounts that share a mailbox, and what to do; return them as JSON."""
    from musicsvc.store.accounts import mailboxes

    pairs = session.read(mailboxes.shared)
    for pair in pairs:
        session.echo(f"Warning: {pair.finding} {pair.hint}")
    return [pair._asdict() for pair in pairs]


def _hashed(password: str, email: str, settings: "Settings") -> str:
    from musicsvc.store.accounts import passwords

    problem = passwords.check(password, email=email, hosted=settings.hosted)
    if problem:
        raise Invalid({"password": problem})
    return passwords.hash_password(password)


def _tell(session: Session, user: "User", message: str, *, json: bool) -> None:
    session.echo(message)
    if json:
        output.print_json(shown(user))
