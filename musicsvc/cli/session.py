"""The context of a running command: settings, store, clock, and messages on stderr."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from musicsvc.cli import stdio
from musicsvc.clock import Clock
from musicsvc.errors import Failure, Invalid
from musicsvc.wording import escape_controls

if TYPE_CHECKING:
    from musicsvc.config import Settings
    from musicsvc.store.engine.store import Store

T = TypeVar("T")


def option_of(setting: str) -> str:
    """Return the option of `serve` for a setting, such as `--tls-key` for `server.tls_key`."""
    return f"--{setting.rpartition('.')[2].replace('_', '-')}"


def once(unit: Callable[[], T]) -> Callable[[], T]:
    """Return a unit of work that writes a file, and so cannot be called again after a connection error."""
    begun = False

    def guarded() -> T:
        nonlocal begun
        if begun:
            raise Failure("The database connection was lost during the export. Run it again.")
        begun = True
        return unit()

    return guarded


@dataclass
class Session:
    """The context of a running command, with the options that commands share."""

    config: Path | None = None
    quiet: bool = False
    traceback: bool = False
    user: str | None = None
    json: bool = False
    demo: bool = False  # the command serves the demo
    migrations: Path | None = None  # their folder, if not that of this version of the service
    clock: Clock = field(default_factory=Clock)
    _echoed: set[str] = field(default_factory=set)

    @staticmethod
    def from_context(context: typer.Context) -> "Session":
        return context.find_root().ensure_object(Session)

    @property
    def now(self) -> int:
        """The current time."""
        return self.clock.now()

    def settings(self, options: Mapping[str, object] | None = None) -> "Settings":
        """Load the effective settings. Warns once about environment variables that match no setting.

        Raises Failure if variables fix the secrets of the demo and the command is another one, and BadParameter for an
        invalid one of the `options`.
        """
        from musicsvc import config, environment, scratch

        given = environment.variables()
        if not self.demo and (names := ", ".join(name for name in environment.DEMO_VARIABLES if name in given)):
            raise Failure(f"{names}: only for musicsvc serve --demo. Unset it for other commands.")
        try:
            settings = config.load(self.config, options)
        except Invalid as wrong:
            name, problem = next(iter(wrong.errors.items()))
            raise typer.BadParameter(problem, param_hint=option_of(name)) from None
        if settings.own_folder.is_dir():
            scratch.ensure(settings.temporary_folder)
        if unknown := config.unknown_variables():
            self.echo_once(f"Warning: {', '.join(unknown)}: no such setting, ignored. musicsvc config show lists all.")
        return settings

    def root(self, what: str) -> tuple[str, list[str]]:
        """Return the service's address: the public one, the running server's or, with a hint, that of the settings.

        `what`: what has this address, for the hint.
        """
        from musicsvc.networks import root_url
        from musicsvc.store.engine.sqlite.file_locks import served_at

        settings = self.settings()
        root = root_url(settings.server)
        if settings.hosted:
            return root, []
        if running := served_at(settings.place, settings.server.port):
            return running, []
        return root, [f"No running server was found: {what} has the address of the settings, {root}."]

    @contextmanager
    def store(self) -> "Iterator[Store]":
        """Open the database for the `with` block. Raises Failure unless its schema is current."""
        from musicsvc.store import opening

        settings = self.settings()
        with opening.connect(settings.store_url, self.migrations, connections=settings.database.connections) as store:
            yield store

    def read(self, unit: Callable[[], T]) -> T:
        """Call `unit` in a read transaction and return its result."""
        with self.store() as store:
            return store.read(unit).result()

    def write(self, unit: Callable[[], T], *, urgent: bool = False) -> T:
        """Call `unit` in a write transaction and return its result after the commit.

        `urgent`: the transaction may use the disk space that is reserved for revocations.
        """
        with self.store() as store:
            return store.write(unit, urgent=urgent).result()

    def create_activity_log(self) -> None:
        """Create the activity log, or upgrade it to the newest schema."""
        from musicsvc.store.activity import log as activity_log

        settings = self.settings()
        activity_log.create(settings.direct_url, settings.activity.file)

    def echo(self, message: str, *, always: bool = False) -> None:
        """Print a message on stderr, unless `--quiet` is set and `always` is not."""
        if always or not self.quiet:
            try:
                typer.echo(escape_controls(message), file=sys.stderr)
            except OSError:
                stdio.discard(sys.stderr)  # ignore messages that cannot be printed

    def confirm(self, what: str, question: str, *, hint: str = "") -> None:
        """Ask the question on the terminal, after the hint, and exit unless the answer is yes.

        Raises Failure if there is no terminal. `what`: what the command does, for the message.
        """
        if not sys.stdin.isatty():
            raise Failure(f"This {what}. To confirm this without a terminal, add --yes.")
        if hint:
            self.echo(hint)
        typer.confirm(question, abort=True, err=True)

    def echo_once(self, message: str) -> None:
        """Print a message on stderr unless it has already been printed."""
        if message not in self._echoed:
            self._echoed.add(message)
            self.echo(message)
