"""Commands and groups whose help describes values in plain words, and the arguments and options that several share."""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from musicsvc.cli.session import Session
from musicsvc.wording import explain_validation

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON value.")]
LARGEST_ID = 2**53 - 1  # as in the API
PasswordStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TIME_HELP = "A time (2026-01-31T12:00:00Z), or an age (90s, 15m, 2h, 7d)."


class Command(TyperCommand):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            ranged: Any = parameter
            ranged.min = ranged.max = None  # used only in the help; the type checks values

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that Typer adds to required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options, without the types that Typer adds to arguments."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                name = record[0].partition(" <")[0] if parameter.param_type_name == "argument" else record[0]
                rows[parameter.param_type_name].append((name, record[1]))
        for kind, written in rows.items():
            if written:
                with formatter.section(f"{kind.title()}s"):
                    formatter.write_dl(written)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Replaces validation errors of pydantic by messages in plain words."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                error.message = f"{explain_validation(dict(error.__cause__.errors()[0]))}."
            raise


def group(help_text: str, *examples: str) -> typer.Typer:
    """Create a command group whose help text ends with these examples."""
    return typer.Typer(help=help_text, no_args_is_help=True, epilog=show_examples(*examples))


def show_examples(*examples: str) -> str:
    r"""Return the text of example commands for a help page, one per line. The initial `\b` keeps the line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  musicsvc {example}" for example in examples)])


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
