"""Commands whose help and error messages describe values in plain words instead of Python types."""

from typing import Any

import typer
from typer.core import TyperCommand

from musicsvc.wording import explain_validation


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
