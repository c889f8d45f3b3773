"""Arguments and options that several commands share."""

from typing import Annotated, Any

import typer

from musicsvc.cli.session import Session

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON value.")]
LARGEST_ID = 2**53 - 1  # as in the API
PasswordStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TIME_HELP = "A time (2026-01-31T12:00:00Z), or an age (90s, 15m, 2h, 7d)."


def option(metavar: str, help_text: str, *names: str, **settings: Any) -> Any:
    """Return a Typer option that takes a value. Without `names`, the option has the name of the parameter."""
    return typer.Option(*names, metavar=metavar, help=help_text, **settings)


def account_argument(metavar: str, help_text: str) -> Any:
    """Return a Typer argument that names an account. The option `--user` can be used instead."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False, callback=one_account)


def one_account(context: typer.Context, email: str) -> str:
    """Return the account that the argument EMAIL or the option `--user` names. Raises BadParameter unless one does."""
    user = Session.from_context(context).user
    if bool(email) == bool(user):
        raise typer.BadParameter("Name one account: EMAIL, or --user EMAIL.")
    return email or user or ""


def identifier(noun: str, metavar: str = "ID") -> Any:
    """Return a Typer argument for an id. `noun`: the kind of object, such as `track`, for the help text."""
    return typer.Argument(metavar=metavar, min=1, max=LARGEST_ID, help=f"The {noun}'s id.", show_default=False)


def search_option(fields: str) -> Any:
    """Return the option `--search` of a list command. `fields`: the searched fields, for the help text."""
    return option("TEXT", f"Only rows with TEXT in {fields}, ignoring case and accents.")


TokenId = Annotated[int, identifier("token")]
Email = Annotated[str, account_argument("EMAIL", "The email address of the account.")]
Limit = Annotated[int | None, option("N", "Only the newest N rows.", min=1, max=1_000_000)]
