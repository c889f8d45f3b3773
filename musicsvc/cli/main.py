"""The entry point: the table of command groups, and the one place where failures become lines and exit codes."""

import sys
import traceback
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from musicsvc.cli import stdio
from musicsvc.cli.session import Session
from musicsvc.errors import Failure, Invalid
from musicsvc.wording import escape_controls

FAILED, USAGE, INTERRUPTED, UNREAD = 1, 2, 130, 141

# Modules of this package, each with an `app`; one without a name puts its commands beside the groups.
GROUPS: tuple[tuple[str, str | None], ...] = (
    ("init", None),
    ("serve", None),
    ("users", "user"),
    ("access", "access"),
    ("tokens", "token"),
    ("seed", None),
    ("importing", "import"),
    ("exporting", "export"),
    ("artists", "artist"),
    ("fingerprints", "fingerprint"),
    ("insights", "insights"),
    ("plays", "plays"),
    ("database", "db"),
    ("doctor", None),
    ("activity", None),
    ("abuse", "abuse"),
    ("settings", "config"),
    ("openapi", None),
)


def _version(wanted: bool) -> None:
    if wanted:
        from musicsvc import __version__

        typer.echo(f"musicsvc {__version__}")
        raise typer.Exit


def _keep(context: typer.Context, parameter: typer.CallbackParam, value: bool | Path | None) -> bool | Path | None:
    """Keep an option that every command takes, before or after the command's name."""
    if value and parameter.name:
        setattr(Session.from_context(context), parameter.name, value)
    return value


Shared = partial(typer.Option, callback=_keep, expose_value=False)


def _root(
    config: Annotated[Path | None, Shared("--config", metavar="FILE", help="Settings file (TOML).")] = None,
    quiet: Annotated[bool, Shared("--quiet", "-q", help="No messages, only results and errors.")] = False,
    traceback: Annotated[bool, Shared("--traceback", hidden=True)] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """A music catalog, playlist and creator-analytics API that starts with one command."""


def command() -> TyperGroup:
    """The whole program as one command."""
    app = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.callback()(_root)
    for module, name in GROUPS:
        app.add_typer(import_module(f"musicsvc.cli.{module}").app, name=name)
    group = get_command(app)
    if not isinstance(group, TyperGroup):
        raise TypeError("a program with several commands is a group")
    _share(group, [option for option in group.params if option.name in {"config", "quiet", "traceback"}])
    return group


def _share(group: TyperGroup, options: list[Any]) -> None:
    """Give every command below the options that are the same for all."""
    for below in group.commands.values():
        if isinstance(below, TyperGroup):
            _share(below, options)
        else:
            below.params.extend(options)


def main() -> None:
    """Run the program and exit: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 141 nobody reads the output."""
    stdio.prepare()
    session = Session()
    try:
        code = _run(session)
        stdio.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = UNREAD
    except Failure as failure:
        code = _comescape_controls(_sentence(failure))
    except OSError as error:
        code = _comescape_controls(_os_fault(error))
    except Exception as error:  # noqa: BLE001 - the last resort: a user is shown a line, never a trace
        if session.traceback:
            traceback.print_exc()
        code = _comescape_controls(f"Unexpected {type(error).__name__}: {error} (--traceback shows where)")
    stdio.discard_unwritten()
    sys.exit(code)


def _run(session: Session) -> int:
    try:
        "".join(sys.argv).encode()
    except UnicodeEncodeError:
        _comescape_controls("An argument is not valid UTF-8.")
        return USAGE
    try:
        command().main(prog_name="musicsvc", obj=session)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer exits with 1 then
            return UNREAD
        return end.code if isinstance(end.code, int) else FAILED if end.code else 0
    return 0


def _sentence(failure: Failure) -> str:
    if isinstance(failure, Invalid) and failure.errors:
        return " ".join(f"{field}: {problem}" for field, problem in failure.errors.items())
    return failure.here


def _os_fault(error: OSError) -> str:
    from musicsvc import permissions

    fault = f"{error.filename or 'The output'}: {error.strerror or error}."
    named = isinstance(error, PermissionError) and isinstance(error.filename, str)
    denied = permissions.denial(Path(error.filename), write=True) if named else None
    return f"{fault} {denied}" if denied else fault


def _comescape_controls(message: str) -> int:
    """Write one line to stderr, whatever is in the message; return the exit code of a failure."""
    stdio.write_error(f"Error: {escape_controls(' '.join(message.split()))}")
    return FAILED
