"""`musicsvc user`: manage accounts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from musicsvc import config
from musicsvc.cli import deleting, output, secret_input
from musicsvc.cli.options import Email, FileCommand, Limit, PasswordStdin, flag, group, option, refuse, search_option
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat
from musicsvc.errors import Failure
from musicsvc.server.shapes import envelope
from musicsvc.store import models
from musicsvc.store.accounts import api_access, email_addresses, password_links, passwords, users

app = group(
    "user create ada@example.test --display-name Ada",
    "user suspend ada@example.test --reason scraping",
    "user delete ada@example.test --artists-to eve@example.test --yes",
)


EVERY_ADDRESS = ("0.0.0.0:", "[::]:")


def user_json(user: models.User) -> JSON:
    """Return an account as JSON for the output of `--json`."""
    found = envelope.picked(user, "id", "email", "display_name", "admin", "api_access", "reports_plays")
    found["has_password"] = user.password_hash is not None
    return found | envelope.picked(user, "suspended_at", "suspended_reason", "created_at")


def link_json(session: Session, link: password_links.NewLink | None) -> JSON:
    """Return the link's address and expiry for the output of `--json`, null if there is no link."""
    return {
        "password_link": link and link.url(session.root("the link")[0]),
        "password_link_expires_at": link and isoformat(link.expires_at),
    }


def print_link(session: Session, email: str, link: password_links.NewLink) -> None:
    """Print the address alone on stdout, so that it can be piped. In a terminal, add a hint on stderr."""
    root, hints = session.root("the link")
    if root.partition("://")[2].startswith(EVERY_ADDRESS):
        hints.append("The server listens on every address: replace the one in the link by the name of its machine.")
    if sys.stdout.isatty():
        hints[:0] = [f"Give this link to {email}. It sets the password once, within 24 hours, and is not shown again."]
    if hints:
        session.echo(" ".join(hints))
    typer.echo(link.url(root))


@app.command()
def create(
    session: Session,
    email: Email = "",
    display_name: Annotated[str | None, option("NAME", "Default: the part of EMAIL before the @.")] = None,
    password_stdin: PasswordStdin = False,
    admin: Annotated[bool, flag("Make the account an administrator of the service.", "--admin")] = False,
) -> None:
    """Create an account. Without --password-stdin, print a one-time link to set its password."""
    _refuse("EMAIL", email, display_name)
    hashed = _hash(secret_input.read_stdin("password"), email, session.settings()) if password_stdin else None
    now = session.clock.now()

    def unit() -> tuple[models.User, password_links.NewLink | None]:
        user = users.create(email, display_name=display_name, password_hash=hashed, admin=admin, now=now)
        return user, None if hashed else password_links.create(user, now=now)

    user, link = session.write(unit)
    result = user_json(user) | link_json(session, link)
    output.print_result(session, f"Created account {user.id} for {user.email}.", result)
    if link and not session.json:
        print_link(session, user.email, link)


@app.command()
def password(session: Session, email: Email = "", password_stdin: PasswordStdin = False) -> None:
    """Set an account's password, from a prompt or from stdin."""
    session.read(lambda: users.by_email(email))
    typed = (
        secret_input.read_stdin("password")
        if password_stdin
        else secret_input.prompt_twice("New password", "--password-stdin")
    )
    hashed = _hash(typed, email, session.settings())
    now = session.clock.now()
    user = session.write(change(email, lambda user: users.set_password(user, hashed, now=now)))
    output.print_result(session, f"The password of {user.email} is set.", user_json(user))


@app.command()
def password_link(session: Session, email: Email = "") -> None:
    """Print a one-time link to set an account's password.

    It is valid for 24 hours, until the next link or until a password is set.
    """

    def unit() -> tuple[models.User, password_links.NewLink]:
        user = users.by_email(email)
        if user.suspended_at is not None:
            raise Failure(f"The account is suspended. Run: musicsvc user reinstate {user.email}")
        return user, password_links.create(user, now=session.now)

    user, link = session.write(unit)
    if session.json:
        output.print_json({"email": user.email} | link_json(session, link))
    else:
        print_link(session, user.email, link)


@app.command("list")
def list_(
    session: Session,
    search: Annotated[str | None, search_option("the e-mail or display name")] = None,
    limit: Limit = None,
) -> None:
    """List accounts, oldest first."""
    columns = ("id", "email", "display_name", "api_access", "suspended_at", "admin", "reports_plays", "created_at")
    output.print_list(session, lambda: users.list(limit=limit, text=search), user_json, columns)


@app.command()
def show(session: Session, email: Email = "") -> None:
    """Show one account."""
    output.print_record(session, user_json(session.read(lambda: users.by_email(email))))


@app.command()
def suspend(
    session: Session,
    email: Email = "",
    reason: Annotated[str | None, option("TEXT", "The reason, shown by `user show`.")] = None,
) -> None:
    """Suspend an account: requests with its tokens get 403 at once."""
    given = (reason or "").strip() or None
    refuse({"--reason": given and api_access.problems({"reason": given})["reason"]})
    user = session.write(change(email, lambda user: users.suspend(user, now=session.now, reason=given)), urgent=True)
    message = f"{user.email} is suspended."
    if given not in {None, user.suspended_reason}:
        message += f" It was before, and the earlier reason stays: {user.suspended_reason or 'none'}."
    output.print_result(session, message, user_json(user))


@app.command()
def reinstate(session: Session, email: Email = "") -> None:
    """End an account's suspension; its tokens work at once."""
    user = session.write(change(email, lambda user: users.reinstate(user, now=session.now)))
    output.print_result(session, f"{user.email} is no longer suspended.", user_json(user))


@app.command()
def edit(
    session: Session,
    email: Email = "",
    new: Annotated[str | None, option("NEW", "The new e-mail address.", "--email")] = None,
    display_name: Annotated[str | None, option("NAME", "The name that others see.")] = None,
) -> None:
    """Change an account's e-mail address or display name. A new e-mail address ends its link to set the password."""
    if new is None and display_name is None:
        raise typer.BadParameter("Name a field to change: --email or --display-name.")
    _refuse("--email", new, display_name)

    def unit() -> models.User:
        user = users.by_email(email)
        users.edit(user, email=new, display_name=display_name, now=session.now)
        return user

    user = session.write(unit)
    output.print_result(session, f"{user.email} (account {user.id}) is changed.", user_json(user))


@app.command()
def admin(
    session: Session,
    email: Email = "",
    on: Annotated[
        bool | None, typer.Option("--on/--off", help="Make it an administrator, or end this right.", show_default=False)
    ] = None,
) -> None:
    """Make an account an administrator of the service, or end this right. The last administrator keeps it."""
    if on is None:
        raise typer.BadParameter("Add --on or --off.")
    user = session.write(change(email, lambda user: users.set_admin(user, admin=on, now=session.now)), urgent=not on)
    state = "an administrator" if user.admin else "not an administrator"
    output.print_result(session, f"{user.email} is {state}.", user_json(user))


app.command("export", cls=FileCommand)(deleting.export)
app.command("delete")(deleting.delete)


def change(email: str, action: Callable[[models.User], object]) -> Callable[[], models.User]:
    """Return a function that loads the account, calls `action` with it and returns it.

    Call the function in a transaction.
    """

    def unit() -> models.User:
        user = users.by_email(email)
        action(user)
        return user

    return unit


def _refuse(hint: str, email: str | None, display_name: str | None) -> None:
    """Raise BadParameter for an e-mail, which the option `hint` gives, or a display name that no account can have."""
    refuse(
        {
            hint: None if email is None else email_addresses.problem(email),
            "--display-name": None if display_name is None else users.name_fault(display_name.strip()),
        }
    )


def _hash(password: str, email: str, settings: config.Settings) -> str:
    problem = passwords.check(password, email=email, hosted=settings.hosted)
    if problem:
        raise typer.BadParameter(problem, param_hint="password")
    return passwords.hash_password(password)
