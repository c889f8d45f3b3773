"""A progress bar on stderr, shown only if stderr is a terminal that can draw it (not TERM=dumb)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from musicsvc.cli.session import Session
from musicsvc.wording import escape_controls

ROWS = 1_000  # between two updates


@contextmanager
def bar(session: Session, title: str, *, hidden: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Show a progress bar. Yield the function that updates it; its arguments are the amount done and the total.

    `hidden`: show nothing. Use it if rows are printed to the same terminal: the bar would erase their last line.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    if hidden or session.quiet or not console.is_terminal or console.is_dumb_terminal:
        yield lambda _done, _total: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(escape(escape_controls(title)), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def counted(rows: Iterable[Any], total: int, on_progress: Callable[[float, float], None]) -> Iterator[Any]:
    """Yield the rows, and call `on_progress` after every ROWS of them. There may be more rows than `total`."""
    for done, row in enumerate(rows, 1):
        if done % ROWS == 0:
            on_progress(done, max(done, total))
        yield row
