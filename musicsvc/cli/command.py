"""Commands whose help and errors describe values in plain words instead of by the program's types."""

from typing import Any

import typer
from typer.core import TyperCommand

from musicsvc.wording import explain_validation


class Command(TyperCommand):
    """A command whose help and errors describe values in plain words instead of by types."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            ranged: Any = parameter
            ranged.min = ranged.max = None  # only the help reads these: values are checked by the type

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without Typer's braces around required arguments."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options, without Typer's types behind the arguments."""
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
        """Parse the arguments; errors of the validation library are put in plain words."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                error.message = f"{explain_validation(dict(error.__cause__.errors()[0]))}."
            raise


def group(help_text: str, *examples: str) -> typer.Typer:
    """Return a command group whose help ends with these examples."""
    return typer.Typer(help=help_text, no_args_is_help=True, epilog=show_examples(*examples))


def show_examples(*examples: str) -> str:
    """Return the paragraph of examples below a help text; the first character keeps its line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  musicsvc {example}" for example in examples)])
