"""`musicsvc import list` and `musicsvc import undo`: list past imports, and undo one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from musicsvc.cli import interrupts, output, progress
from musicsvc.cli.options import Yes, identifier
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.server.shapes import envelope
from musicsvc.store.engine import store as stores
from musicsvc.store.importing.undoing import runs, wording
from musicsvc.store.importing.undoing import undo as undoing
from musicsvc.wording import escape_controls, quantity

PARTLY = "partly"


def list_(session: Session) -> None:
    """List the imports, newest first."""
    columns = ("id", "kind", "state", "rows", "new", "changed", "started_at", "user", "file")
    found = [_to_json(row) for row in session.read(runs.newest)]
    shown = found if session.json else [row | {name: _total(row, name) for name in ("new", "changed")} for row in found]
    output.print_table(session, shown, columns)
    if not found:
        session.echo("No imports yet.")


def undo(session: Session, run: Annotated[int, identifier("import")], yes: Yes = False) -> None:
    """Undo an import: delete the rows that it created, restore the rows that it changed.

    Rows that other data refers to are kept and listed. Run it again to retry them. On a terminal, the command first
    shows what it will do, and asks.
    """
    with session.store() as store:
        if not yes and sys.stdin.isatty():
            _ask(store, run)
        state = f"Part of import {run} may be undone."
        with interrupts.stopping(session, state), progress.bar(session, f"import {run}") as on_progress:
            summary = undoing.undo(store, run, now=session.now, on_progress=on_progress)
    counts = _counts(summary)
    if session.json:
        output.print_json({"import": _to_json(summary.run), **counts, "kept": wording.kept_rows(summary.kept)})
        return
    output.print_table(session, [{"kind": kind} | row for kind, row in counts.items()], COLUMNS)
    _explain(session, summary)


def _ask(store: stores.Store, run: int) -> None:
    """Show what an undo of the import will do, and exit unless the user agrees."""
    found = store.read(lambda: undoing.preview(run)).result()
    deleted = wording.quantities({"play": found.plays} | found.deleted)
    typer.echo(f"Import {run} ({found.run.kind}, {escape_controls(found.run.file)}) will be undone.", err=True)
    typer.echo(f"Deletes: {deleted or 'nothing'}.", err=True)
    if restored := wording.quantities(found.restored):
        typer.echo(f"Restores earlier values of: {restored}.", err=True)
    for line in wording.kept_lines(found.kept, "Keeps"):
        typer.echo(line, err=True)
    typer.confirm(f"Undo import {run}?", abort=True, err=True)


COLUMNS = ("kind", "taken_back", "kept")


def _counts(summary: undoing.UndoSummary) -> dict[str, dict[str, int]]:
    """Map each kind of rows, such as `albums`, to the numbers of rows `taken_back` (undone) and `kept`."""
    found = {"plays": {"taken_back": summary.plays, "kept": 0}}
    for table, noun in wording.NOUNS.items():
        kept = sum(len(ids) for (of, _), ids in summary.kept.items() if of == table)
        found[noun] = {"taken_back": summary.counts[table], "kept": kept}
    return {kind: row for kind, row in found.items() if any(row.values())}


def _explain(session: Session, summary: undoing.UndoSummary) -> None:
    for line in wording.kept_lines(summary.kept, "Kept"):
        session.echo(line)
    if summary.pruned:
        session.echo("The figures of days deleted by `musicsvc plays prune` still include the plays of this import.")
    run = summary.run.id
    if summary.run.state == PARTLY:
        session.echo(f"Import {run} is undone, except for the kept rows. Once nothing refers to them, run this again.")
    else:
        session.echo(f"Import {run} is undone: {quantity(summary.rows, 'row')} taken back.")


def _to_json(row: runs.RunRow) -> JSON:
    return row._asdict() | envelope.picked(row, "started_at", "undone_at")


def _total(row: JSON, name: str) -> int:
    return sum(counts[name] for counts in row["counts"].values())
