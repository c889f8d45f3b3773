"""Run one `musicsvc import`: show the progress, then print the refused rows and a summary. Handles Ctrl+C."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer

from musicsvc import permissions
from musicsvc.cli import input_file, interrupts, output, progress
from musicsvc.cli.output import JSON
from musicsvc.cli.output_file import folder_of, open_output, require_file
from musicsvc.cli.session import Session
from musicsvc.errors import Failure, Invalid
from musicsvc.store.engine import store as stores
from musicsvc.store.importing import refused_rows, runner
from musicsvc.store.importing.columns import Guess
from musicsvc.store.importing.files import records
from musicsvc.store.importing.summary import ImportSummary, Progress
from musicsvc.wording import cut, escape_controls, quantity

Opener = Callable[[Path], records.Reader]
Work = Callable[..., ImportSummary]
Warn = Callable[["stores.Store", Callable[[], records.Reader]], str | None]

AGAIN = "Run the same command again to continue; imported rows are not added twice."
MOST_ARTISTS = 50  # named in a line
GARBAGE = 200_000  # objects between two collections; a batch makes fewer, and hardly any of them refer to each other


class RunOptions(NamedTuple):
    """Options that every import has."""

    file: Path  # the file to import
    refused: Path | None  # the CSV file to write refused rows to
    chosen: runner.ImportOptions


def import_file(
    session: Session,
    options: RunOptions,
    open_file: Opener,
    kind: Callable[[runner.ImportOptions], runner.Kind[Any]],
    warn: Warn | None = None,
) -> None:
    """Open the file and import it as the kind of import that `kind` returns. See `run`."""
    now = session.now
    try:
        kind(options.chosen).close()  # --map and --divide are judged before a database is opened
    except Invalid as wrong:
        option, problem = next(iter(wrong.errors.items()))
        raise typer.BadParameter(problem, param_hint=option) from None

    def work(
        store: stores.Store, reader: records.Reader, *, on_progress: Progress, trial: bool = False
    ) -> ImportSummary:
        chosen = replace(options.chosen, dry_run=trial or options.chosen.dry_run)
        return runner.run(store, reader, kind(chosen), now=now, on_progress=on_progress)

    run(session, options, open_file, work, warn)


def run(session: Session, options: RunOptions, open_file: Opener, work: Work, warn: Warn | None = None) -> None:
    """Open the file, import it with `work`, and print the result.

    Exits with code 1 if every row was refused. With `--strict` it first tries the import, with `trial` of `work`, and
    raises Failure if something would not be taken. `warn` is called before the import. The warning that it returns is
    printed with the import's id.
    """
    _check(options)
    run = _Run(session, options)
    try:
        with interrupts.stopping(session, again=AGAIN):
            summary = run.do(open_file, work, warn)
    except KeyboardInterrupt:
        run.interrupted()
        raise
    finally:
        run.report_refused()
    if session.json:
        output.print_json(_to_json(options, summary))
    else:
        _print(session, options, summary)
    if options.chosen.strict and (found := summary.objections):
        raise Failure(f"Nothing was imported (--strict): {', '.join(found)}.")
    if run.unwritten or _all_refused(summary):
        raise typer.Exit(1)


def _check(options: RunOptions) -> None:
    """Raise an error if the file for refused rows cannot be written or is the file to import."""
    target = options.refused
    if target is None:
        return
    if target.suffix.lower() != ".csv":
        raise typer.BadParameter(
            "Refused rows are written as CSV. Choose a file name that ends in .csv.", param_hint="--refused"
        )
    if os.path.realpath(target) == os.path.realpath(options.file):
        raise typer.BadParameter(
            "The output file is the file to import. Choose another output file.", param_hint="--refused"
        )
    require_file(target)
    if not target.parent.is_dir():
        raise Failure(f"{target} cannot be written: the folder {target.parent} does not exist. Create it first.")
    folder = folder_of(Path(os.path.realpath(target)))
    if folder is not None and (denied := permissions.denial(folder / "part", write=True)) is not None:
        raise Failure(f"{target} cannot be written. {denied}")


class _Run:
    """The state of one import: its latest summary, and the number of rows imported."""

    def __init__(self, session: Session, options: RunOptions) -> None:
        self._session = session
        self._options = options
        self._summary: ImportSummary | None = None
        self._through = 0
        self._rows: refused_rows.RefusedRows | None = None
        self._warning: str | None = None
        self.unwritten = False  # the file of refused rows could not be written

    def do(self, open_file: Opener, work: Work, warn: Warn | None) -> ImportSummary:
        with ExitStack() as stack:
            self._session.settings()  # the reader may need the folder for temporary files
            path = stack.enter_context(input_file.seekable(self._options.file))
            opened, chosen = partial(open_file, path), self._options.chosen
            reader = stack.enter_context(opened())
            store = stack.enter_context(self._session.store())
            self._warning = None if warn is None else warn(store, opened)
            gc.freeze()  # the modules, which the collector would go through again and again
            gc.set_threshold(GARBAGE)
            if chosen.strict and not chosen.dry_run:
                tried = self._read(reader, partial(work, store, trial=True))
                if tried.objections:
                    return tried
                reader = stack.enter_context(opened())
            return self._read(reader, partial(work, store))

    def _read(self, reader: records.Reader, work: Callable[..., ImportSummary]) -> ImportSummary:
        if self._options.refused is not None:
            reader = self._rows = refused_rows.RefusedRows(reader)
        self._summary, self._through = None, 0
        with progress.bar(self._session, self._options.file.name) as show_progress:

            def on_progress(summary: ImportSummary) -> None:
                self._summary, self._through = summary, summary.rows
                self._warn(summary.run)
                if self._rows is not None:
                    self._rows.add(summary)
                show_progress(reader.position, reader.size)

            try:
                return work(reader, on_progress=on_progress)
            except Invalid:
                raise
            except Failure as failure:
                if self._summary is None:  # it has not begun
                    raise
                raise Failure(failure.here + resume_hint(self._through, dry_run=self._summary.dry_run)) from None

    def _warn(self, run: int | None) -> None:
        """Print the warning, once. `run`: the id of the import, which a dry run has not."""
        warning, self._warning = self._warning, None
        if warning is not None:
            undo = "" if run is None else f" To undo this import, run: musicsvc import undo {run}"
            self._session.echo(f"{warning}{undo}")

    def interrupted(self) -> None:
        again = AGAIN
        if self._summary is not None and self._summary.run is not None:
            again += f" To take them back: musicsvc import undo {self._summary.run}"
        if self._summary is not None and self._summary.dry_run:
            self._session.echo("Interrupted. Nothing was written (--dry-run).")
        elif self._through:
            self._session.echo(
                f"Interrupted. At least the first {quantity(self._through, 'row')} were imported. {again}"
            )
        else:
            self._session.echo(f"Interrupted. The first rows may have been imported. {again}")

    def report_refused(self) -> None:
        """Print the rows refused so far, and write them to the CSV file if the user asked for one.

        Also called after an error.
        """
        refused = self._summary.refused if self._summary is not None and self._through else []
        if self._rows is not None and self._options.refused is not None:
            if self._summary is not None:
                self._rows.add(self._summary)
            try:
                with open_output(self._options.refused) as file:
                    self._rows.write(file)
            except OSError as error:  # what was imported is still told
                self.unwritten = True
                fault = error.strerror or str(error)
                self._session.echo(f"Error: {self._options.refused} cannot be written: {fault}.", always=True)
        if not self._session.json:
            for line in refused_rows.lines(refused):
                typer.echo(escape_controls(line), err=True)


def resume_hint(through: int, *, dry_run: bool) -> str:
    """Return a sentence to append to an error message: how many rows (`through`) were imported before the error."""
    if dry_run or not through:
        return " Nothing was imported."
    return f" The first {through:,} rows were imported. Run the command again to continue."


def _print(session: Session, options: RunOptions, summary: ImportSummary) -> None:
    columns = ("new", "changed", "repeated", "refused")
    found = [
        {"kind": kind} | {name: getattr(counts, name) for name in columns} for kind, counts in summary.counts.items()
    ]
    if summary.at_most:
        found = [row | {name: f"at most {row[name]}" for name in ("new", "changed") if row[name]} for row in found]
    output.print_table(session, found, ("kind", *columns))
    for line in summary.account():
        session.echo(line)
    for reading in summary.readings:
        session.echo(escape_controls(" ".join(reading).strip()))
    taken = [_taken(each) for each in summary.columns if each.guessed]
    if taken:
        session.echo(f"Columns: {'; '.join(taken)}.")
    _print_artists(session, summary)
    refused = "all" if _all_refused(summary) else f"{len(summary.refused):,}"
    read = f"{quantity(summary.rows, 'row')} read, {refused} of them refused."
    session.echo(f"{read} Nothing was written (--dry-run)." if options.chosen.dry_run else read)
    if summary.run is not None:
        session.echo(f"Import {summary.run}. To undo it: musicsvc import undo {summary.run}")


def _print_artists(session: Session, summary: ImportSummary) -> None:
    """Print the names of the new artists. Those that may be several artists come first, with the signs between them."""
    found = summary.new_artists
    if not found:
        return
    names = [f"{cut(name)} ({' '.join(marks)})" if marks else cut(name) for name, marks in found]
    more = max(len(names), 0 if summary.at_most else summary.counts["artists"].new) - MOST_ARTISTS
    listed = ", ".join(names[:MOST_ARTISTS]) + (f" and {more:,} more" if more > 0 else "")
    session.echo(escape_controls(f"New artists: {listed}."))
    if found[0][1]:
        columns = [each.column for each in summary.columns if (each.field or "").endswith("artist")] or ["artist"]
        signs = " ".join(dict.fromkeys(mark for _, marks in found for mark in marks))
        option = escape_controls(" ".join(f'--divide "{cut(column)}={signs}"' for column in columns))
        told = "Names with signs in parentheses may be several artists. To divide some, give all signs of their column"
        session.echo(f"{told}: {option}")


def _taken(guess: Guess) -> str:
    written = f" ({guess.written})" if guess.written else ""
    return escape_controls(f"{cut(guess.column)} is {guess.field}{written}")


def _all_refused(summary: ImportSummary) -> bool:
    return 0 < len(summary.refused) == summary.rows


def _to_json(options: RunOptions, summary: ImportSummary) -> JSON:
    return {
        "import": summary.run,
        "file": str(options.file),
        "dry_run": options.chosen.dry_run,
        **({"strict": summary.objections} if options.chosen.strict else {}),
        **({"at_most": True} if summary.at_most else {}),
        "rows": summary.rows,
        **{kind: asdict(counts) for kind, counts in summary.counts.items()},
        "refused": [{"line": row.line, "reason": row.reason} for row in summary.refused],
        "notes": {note: count for note, count in summary.notes.items() if count},
        "left_out": [
            {"field": name, "reason": reason, **asdict(cells)} for (name, reason), cells in summary.left_out.items()
        ],
        "unread_columns": [*map(asdict, summary.unread)],
        "shared_upcs": [each._asdict() for each in summary.shared_upcs],
        **({"remark": " ".join(remark.what for remark in summary.readings)} if summary.readings else {}),
        "columns": [
            {"column": each.column, "field": each.field, "why": each.why, "written": each.written}
            for each in summary.columns
            if each.guessed or each.field is None
        ],
        "unused_columns": summary.unused,
        "new_artists": [{"name": name, "marks": marks} for name, marks in summary.new_artists],
    }
