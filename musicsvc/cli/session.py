"""What a command is given: the settings, the store, the clock, and a voice on stderr."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from musicsvc.cli import stdio
from musicsvc.clock import Clock
from musicsvc.wording import escape_controls

if TYPE_CHECKING:
    from musicsvc.config import Settings
    from musicsvc.store.engine.store import Store

T = TypeVar("T")


@dataclass
class Session:
    """One run of the program; the options that every command takes are kept here."""

    config: Path | None = None
    quiet: bool = False
    traceback: bool = False
    clock: Clock = field(default_factory=Clock)
    _said: set[str] = field(default_factory=set)

    @staticmethod
    def from_context(context: typer.Context) -> "Session":
        """The session of the command that runs."""
        return context.find_root().ensure_object(Session)

    def settings(self, options: Mapping[str, object] | None = None) -> "Settings":
        """The effective settings; variables that set nothing are told of once."""
        from musicsvc import config

        settings = config.load(self.config, options)
        if unknown := config.unknown_variables():
            self.echo_once(f"Warning: {', '.join(unknown)}: no such setting, ignored. musicsvc config show lists all.")
        return settings

    @contextmanager
    def store(self) -> "Iterator[Store]":
        """The store, open, at the right schema."""
        from musicsvc.store import opening

        with opening.connect(self.settings().store_url) as store:
            yield store

    def read(self, unit: Callable[[], T]) -> T:
        """What the unit reads from the store."""
        with self.store() as store:
            return store.read(unit).result()

    def write(self, unit: Callable[[], T]) -> T:
        """What the unit answers once its changes are committed."""
        with self.store() as store:
            return store.write(unit).result()

    def write_urgently(self, unit: Callable[[], T]) -> T:
        """The same for a revocation, which a full disk does not keep from being written."""
        with self.store() as store:
            return store.write_urgently(unit).result()

    def create_activity_log(self) -> None:
        """Make the log of calls, or bring it to its newest state."""
        from musicsvc.store.activity import log as activity_log

        settings = self.settings()
        activity_log.create(settings.store_url, settings.activity.file)

    def echo(self, message: str) -> None:
        """A message on stderr, none where `--quiet` is given."""
        if not self.quiet:
            try:
                typer.echo(escape_controls(message), file=sys.stderr)
            except OSError:
                stdio.discard(sys.stderr)  # a message that nobody takes is no failure

    def echo_once(self, message: str) -> None:
        """A message that is not repeated in this run."""
        if message not in self._said:
            self._said.add(message)
            self.echo(message)
