"""The entry point: builds the command from its groups, and turns exceptions into messages and exit codes."""

import signal
import sys
import traceback
from collections import UserDict
from collections.abc import Callable
from errno import EACCES, EEXIST, EPERM, EROFS
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command, get_group

from musicsvc.cli import later, stdio
from musicsvc.cli.options import Command, for_typer, option, show_examples, to_path
from musicsvc.cli.session import Session
from musicsvc.errors import Failure, Invalid
from musicsvc.wording import escape_controls

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

# Commands and groups of commands: their help in that of the program, their module in this package, and the name there
# if it is not `app`. The help of a group is written here only.
COMMANDS = {
    "init": ("Create the data folder and the database, or upgrade its schema. Safe to repeat.", "database.init_app"),
    "serve": ("Serve the API and its pages.", "serve"),
    "healthcheck": ("Check whether a running server is healthy. The exit code is 0 if it is, else 1.", "healthcheck"),
    "user": ("Create, show, edit, suspend, export and delete accounts.", "users"),
    "access": ("Grant and revoke API access, decide on access requests.", "access"),
    "token": ("Create, list and revoke access tokens.", "tokens"),
    "seed": ("Add the sample data of the demo, or a synthetic catalog of any size. Safe to repeat.", "seed"),
    "import": (
        (
            "Import files: CSV, Excel and OpenDocument workbooks, JSON Lines, Parquet. Refused rows are listed, the"
            " others imported. Repeating an import changes nothing."
        ),
        "importing",
    ),
    "export": ("Export figures as CSV, JSON, Excel or Parquet, or as a PDF report.", "exporting"),
    "artist": ("List, edit, merge and delete artists, assign them to managers, verify them.", "artists"),
    "album": ("List, show, edit, merge and delete albums.", "catalog.album_app"),
    "track": ("List, show, edit, merge and delete tracks.", "catalog.track_app"),
    "fingerprint": ("Set the status of tracks' fingerprints.", "catalog.fingerprint_app"),
    "insights": ("Show and explain the figures of tracks, albums and artists.", "insights"),
    "plays": ("Verify the play counts, and dump and delete plays.", "plays"),
    "listener": ("Erase the names of listeners.", "deleting.listener_app"),
    "db": ("Upgrade, check, back up, restore, copy and compare databases.", "database"),
    "doctor": ("Check the installation and print hints for its problems.", "doctor"),
    "activity": ("Show API calls and security events, newest last. Times are in UTC.", "activity"),
    "activity top": (
        "Show who called most, by token, address or route. Who is near a limit comes first.",
        "activity_top",
    ),
    "abuse": ("Replay the abuse rules over the activity log, and explain their results.", "abuse"),
    "config": ("Show the settings.", "doctor.settings_app"),
    "cover": ("Draw a cover as JPEG or PNG. It looks like the API's preview of the same texts.", "covers"),
    "openapi": ("Print the OpenAPI 3.1 document.", "openapi"),
    "request": ("Send one request to the API without a server.", "requesting"),
}


EXAMPLES = ("init", "serve --demo", "user create ada@example.test --password-stdin")


def _version(wanted: bool) -> None:
    if wanted:
        from musicsvc import __version__

        typer.echo(f"musicsvc {__version__}")
        raise typer.Exit


def _keep(context: typer.Context, parameter: typer.CallbackParam, value: bool | Path | None) -> None:
    """Store the value of a shared option, such as `--quiet`, in the session. The option may follow the command."""
    if value and parameter.name:
        setattr(Session.from_context(context), parameter.name, value)


Shared = partial(typer.Option, callback=_keep, expose_value=False, is_eager=True)  # before names are looked up


def _root(
    config: Annotated[
        Path | None, Shared("--config", metavar="FILE", help="Settings file (TOML).", parser=to_path)
    ] = None,
    quiet: Annotated[bool, Shared("--quiet", "-q", help="Print results and errors only.")] = False,
    traceback: Annotated[bool, Shared("--traceback", hidden=True)] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A music catalog, playlist and creator-analytics API that starts with one command."""


def _json(json: Annotated[bool, Shared("--json", help="Print the result as one JSON value.")] = False) -> None:
    """Declare the option `--json` of all commands with a result."""


def _account(user: Annotated[str | None, Shared("--user", metavar="EMAIL", help="Same as EMAIL.")] = None) -> None:
    """Declare the option `--user` of all commands that take an account as an argument."""


def _name(
    name: Annotated[str | None, option("NAME", "A name in place of an id, even digits.", expose_value=False)] = None,
) -> None:
    """Declare the option `--name` of all commands with an argument for an artist, album or track."""


class _Root(TyperGroup):
    """The root command. It lists the others without their modules."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the same in any context
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names, or the first two."""
        two = " ".join(args[:2])
        return super().resolve_command(ctx, [two, *args[2:]] if len(args) > 1 and two in COMMANDS else args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        listed = [TyperCommand(name, help=help_text) for name, (help_text, _) in COMMANDS.items()]
        TyperGroup(commands=listed).format_commands(ctx, formatter)


@cache
def command() -> TyperGroup:
    """Build the root command, with the shared options."""
    app = typer.Typer(
        cls=_Root, no_args_is_help=True, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )
    app.callback(epilog=show_examples(*EXAMPLES))(_root)
    root = get_command(app)
    if not isinstance(root, TyperGroup):
        raise TypeError("the program must be a command group")
    root.commands = _Commands([option for option in root.params if option.name in {"config", "quiet", "traceback"}])
    return root


class _Commands(UserDict[str, Any]):
    """The commands and groups by name. Each is imported when it is first looked up."""

    def __init__(self, shared: list[Any]) -> None:
        super().__init__(dict.fromkeys(COMMANDS))
        self._options = shared, _declared(_json), _declared(_account), _declared(_name)

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            help_text, place = COMMANDS[name]
            source, _, attribute = place.partition(".")
            with later.deferred():
                below: typer.Typer = getattr(import_module(f"musicsvc.cli.{source}"), attribute or "app")
            commands: list[Any] = below.registered_commands
            for registered in commands:
                registered.cls = registered.cls if issubclass(registered.cls, Command) else Command
                registered.callback = for_typer(registered.callback)
            app = typer.Typer(rich_markup_mode=None)
            app.add_typer(below, name=name, help=help_text)
            group: Any = get_group(app).commands[name]
            _add_options(group, *self._options)
            self.data[name] = group.commands.get(name, group)  # a module of one command has it in a group of its name
        return self.data[name]


def _declared(function: Callable[..., None]) -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return get_command(app).params


def _add_options(group: TyperGroup, shared: list[Any], json: list[Any], account: list[Any], name: list[Any]) -> None:
    """Add the shared options to every command, the others to those that have a result, or take an account or a row."""
    for below in group.commands.values():
        if isinstance(below, TyperGroup):
            _add_options(below, shared, json, account, name)
        elif isinstance(below, Command):
            metavars = [parameter.metavar or "" for parameter in below.params if isinstance(parameter, TyperArgument)]
            takes_account = any(metavar.startswith("EMAIL") for metavar in metavars)
            added = (json if below.has_json else [], account if takes_account else [], name if below.takes_name else [])
            below.params.extend([*chain(*added), *shared])


def main(session: Session | None = None) -> None:
    """Run the program and exit with 0 (success), 1 (failure), 2 (usage), 130 (interrupt) or 141 (closed pipe)."""
    stdio.prepare()
    session = session or Session()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as __main__ leaves it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run(session)
        stdio.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = PIPE_CLOSED
    except Failure as failure:
        code = _print_error(_sentence(failure))
    except OSError as error:
        code = _print_error(_describe_os_error(error))
    except Exception as error:  # noqa: BLE001 - a user sees one line, never a traceback
        if session.traceback:
            traceback.print_exc()
        code = _print_error(f"Unexpected {type(error).__name__}: {error} (add --traceback for the traceback)")
    stdio.discard_unwritten()
    sys.exit(code)


def _run(session: Session) -> int:
    try:
        "".join(sys.argv).encode()
    except UnicodeEncodeError:
        _print_error("An argument is not valid UTF-8.")
        return USAGE
    try:
        command().main(prog_name="musicsvc", obj=session)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer exits with 1 then
            return PIPE_CLOSED
        return int(end.code or 0)
    return 0


def _sentence(failure: Failure) -> str:
    if isinstance(failure, Invalid) and failure.errors:
        return " ".join(f"{field}: {problem}" for field, problem in failure.errors.items())
    return failure.here


def _describe_os_error(error: OSError) -> str:
    from musicsvc import permissions

    if error.errno == EEXIST and isinstance(error.filename, str) and not Path(error.filename).is_dir():
        return f"{error.filename} exists and is not a folder."  # a folder was to be created there
    fault = f"{error.filename or 'The output'}: {error.strerror or error}."
    named = error.errno in {EACCES, EPERM, EROFS} and isinstance(error.filename, str)
    denied = permissions.denial(Path(error.filename), write=True) if named else None
    return f"{fault} {denied}" if denied else fault


def _print_error(message: str) -> int:
    """Print an error message as one line on stderr. Return the exit code for failures."""
    stdio.write_error(f"Error: {escape_controls(' '.join(message.split()))}")
    return FAILED
