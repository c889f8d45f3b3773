"""Commands and groups whose help describes values in plain words, and the arguments and options that several share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from musicsvc.cli import later
from musicsvc.cli.session import Session
from musicsvc.wording import explain_validation

LARGEST_ID = 2**53 - 1  # as in the API
TIME_HELP = "A time (2026-01-31T12:00:00Z), or an age (90s, 15m, 2h, 7d)."


class Name(str):
    """A name, even if it consists of digits."""

    __slots__ = ()


def for_typer(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer calls it, of a function that takes the session in place of Typer's context.

    A further parameter of the function may be a dataclass, whose fields are options that several commands share.
    """
    _, *declared = signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}

    @wraps(command)
    def run(context: typer.Context, **given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(Session.from_context(context), **given)

    parameters = [Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for each in declared:
        group = groups.get(each.name)
        parameters += [each] if group is None else signature(group, eval_str=True).parameters.values()
    typed: Any = run
    typed.__signature__ = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters])
    return run


class Command(TyperCommand):
    """A command. In place of an argument that names an artist, album or track, it also takes `--name NAME`.

    `has_json`: it takes `--json`, too.
    """

    has_json = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        has_name = any("--name" in each.opts for each in self.params)
        self.takes_name = not has_name and any(map(_is_row, self.params))
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

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with all modules that it imported."""
        later.execute_all()
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Replaces validation errors of pydantic by messages in plain words."""
        try:
            return super().parse_args(ctx, [*_names(args)] if self.takes_name else args)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                error.message = f"{explain_validation(dict(error.__cause__.errors()[0]))}."
            raise


class FileCommand(Command):
    """A command whose only result is a file, or none."""

    has_json = False


def _names(args: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with each `--name NAME` replaced by the name."""
    words = iter(args)
    for word in words:
        if word == "--name" and (name := next(words, None)) is not None:
            yield Name(name)
        else:
            yield Name(word.removeprefix("--name=")) if word.startswith("--name=") else word


def group(*examples: str) -> typer.Typer:
    """Create a command group whose help text ends with these examples."""
    return typer.Typer(no_args_is_help=True, epilog=show_examples(*examples))


def show_examples(*examples: str) -> str:
    r"""Return the text of example commands for a help page, one per line. The initial `\b` keeps the line breaks."""
    return "\n".join(["\b", "Examples:", *(f"  musicsvc {example}" for example in examples)])


def option(metavar: str, help_text: str, *names: str, **settings: Any) -> Any:
    """Return a Typer option that takes a value. Without `names`, the option has the name of the parameter."""
    return typer.Option(*names, metavar=metavar, help=help_text, **_with_parser(metavar, settings))


def flag(help_text: str, *names: str) -> Any:
    """Return a Typer option without a value, which is true if it is given."""
    return typer.Option(*names, help=help_text)


def argument(metavar: str, help_text: str, **settings: Any) -> Any:
    """Return a Typer argument whose help does not show the default."""
    return typer.Argument(metavar=metavar, help=help_text, show_default=False, **_with_parser(metavar, settings))


def _with_parser(metavar: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"parser": to_path, **settings} if metavar in {"FILE", "FILE.csv", "DIR"} else settings


def to_path(text: str) -> Path:
    """Return the path that an option or argument names. Raises BadParameter for an empty text, which is no folder."""
    return Path(named(text))


def named(text: str) -> str:
    """Return the text, which names a file or a folder. Raises BadParameter if it is empty."""
    if not text:
        raise typer.BadParameter("An empty text names no file.")
    return text


def refuse(problems: Mapping[str, str | None]) -> None:
    """Raise BadParameter for the first option or argument with a problem, found without the database."""
    for hint, problem in problems.items():
        if problem:
            raise typer.BadParameter(problem, param_hint=hint)


def account_argument(metavar: str, help_text: str) -> Any:
    """Return a Typer argument that names an account. The option `--user` can be used instead."""
    return argument(metavar, help_text, callback=_account)


def _account(context: typer.Context, email: str) -> str:
    return one_account(Session.from_context(context), email)


def one_account(session: Session, email: str) -> str:
    """Return the account that the argument EMAIL or the option `--user` names. Raises BadParameter unless one does."""
    user = session.user
    if bool(email) == bool(user):
        raise typer.BadParameter("Name one account: EMAIL, or --user EMAIL.")
    return email or user or ""


def identifier(noun: str) -> Any:
    """Return a Typer argument for an id. `noun`: the kind of object, such as `track`, for the help text."""
    return argument("ID", f"The {noun}'s id.", min=1, max=LARGEST_ID)


def row(noun: str, metavar: str = "ID", which: str = "") -> Any:
    """Return a Typer argument for an artist, album or track, whose value is its id.

    `noun`: one of these words, or an empty text for that of the argument KIND. `which`: the words for the help text.
    """
    help_text = f"The {which or noun}'s id, or its name if no other {noun} has it." if noun else "Its id, or its name."
    return argument(metavar, help_text, parser=_as_typed, callback=_find_ids(noun))


def row_option(noun: str, help_text: str, *names: str, metavar: str = "ID") -> Any:
    """Return a Typer option for an artist, album or track (`noun`), whose value is its id."""
    help_text = f"{help_text} An id, or a name that no other {noun} has."
    return option(metavar, help_text, *names, parser=_as_typed, callback=_find_ids(noun))


def _as_typed(text: str) -> str:
    return text


def _is_row(parameter: Any) -> bool:
    is_argument: bool = parameter.param_type_name == "argument"
    return is_argument and parameter.type_descriptor.parameter_info.parser is _as_typed


def _find_ids(noun: str) -> Callable[..., Any]:
    """Return a callback that replaces what names artists, albums or tracks (`noun`), one or several, by their ids."""

    def find(context: typer.Context, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return None if value is None else _find_id(noun, context, value)
        return [_find_id(noun, context, each) for each in value]

    return find


def _find_id(noun: str, context: typer.Context, text: str) -> int:
    from musicsvc.store.catalog import field_texts, names

    digits = not isinstance(text, Name)
    find: Callable[[], int] = partial(names.find_id, noun or context.params["kind"].value, text, digits=digits)
    if not (digits and field_texts.is_id(text.strip())):
        return Session.from_context(context).read(find)
    if (number := find()) < 1:
        raise typer.BadParameter(f"must be 1 or more, not {text!r}.")
    return number


def search_option(fields: str) -> Any:
    """Return the option `--search` of a list command. `fields`: the searched fields, for the help text."""
    return option("TEXT", f"Only rows with TEXT in {fields}, ignoring case and accents.")


PasswordStdin = Annotated[bool, flag("Read the password from stdin.", "--password-stdin")]
Yes = Annotated[bool, flag("Do not ask for confirmation.", "--yes", "-y")]
TokenId = Annotated[int, identifier("token")]
Email = Annotated[str, account_argument("EMAIL", "The e-mail address of the account.")]
Limit = Annotated[int | None, option("N", "Only the newest N rows.", min=1, max=1_000_000)]
Out = Annotated[Path, option("FILE", "The output file; - is stdout.", "--output", "-o")]
