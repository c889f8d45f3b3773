"""`musicsvc export verify`: compare an export file with the database."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from musicsvc.cli import meta_files, output
from musicsvc.cli.options import argument
from musicsvc.cli.session import Session
from musicsvc.clock import parse
from musicsvc.errors import Failure
from musicsvc.reports import tables
from musicsvc.reports import verification as files
from musicsvc.server.schemas import exports
from musicsvc.server.shapes import columns, verification
from musicsvc.server.shapes import exports as shapes
from musicsvc.store.insights import export_rows, overview, scopes
from musicsvc.store.plays import history, periods
from musicsvc.store.plays.periods import Window
from musicsvc.wording import quantity

COLUMNS = ("row", "figure", "file", "now")
ALL = "all"  # the row of a difference between checksums


def verify(
    session: Session,
    file: Annotated[Path, argument("FILE", "An export file, with its FILE.meta.json.")],
) -> None:
    """Recompute the rows of an export file, and list the differences. Exit code 1 if there are any."""
    meta = meta_files.read(file)
    found = session.read(lambda: list(_differences(file, meta)))
    unchanged = meta_files.is_unchanged(file, meta)
    changes = [{"row": each.row, "figure": each.column, "file": each.file, "now": each.now} for each in found]
    if session.json:
        output.print_json({"rows": meta.row_count, "file_unchanged": unchanged, "differences": changes})
    elif changes:
        output.print_table(session, changes, COLUMNS)
    session.echo(_summary(meta, {each.row for each in found}, unchanged=unchanged))
    if changes:
        raise typer.Exit(1)


def _summary(meta: exports.FileVerification, differing: set[str], *, unchanged: bool) -> str:
    rows, count = quantity(meta.row_count, "row"), len(differing)
    if not differing:
        return f"The file has {rows}, and the database gives the same."
    cause = "The file is unchanged." if unchanged else "The file was changed after it was written."
    if ALL in differing:
        return f"The database gives other rows now. {cause}"
    return f"{quantity(count, 'row')} of {rows} {'differs' if count == 1 else 'differ'} now. {cause}"


def _differences(file: Path, meta: exports.FileVerification) -> Iterator[files.Difference]:
    """Yield the differences between the rows of the file and the rows that the same export would have now."""
    checksum, same = files.Checksum(), True
    compare = _compare_report if meta.type == "report" else _compare_table
    scope = scopes.Scope(meta.scope.user_id, meta.scope.artist_id, meta.scope.album_id, meta.scope.track_id)
    for difference in compare(file, meta, scope, _window(meta), checksum):
        same = False
        yield difference
    if same and checksum.hexdigest() != meta.sha256:
        yield files.Difference(ALL, "sha256", meta.sha256, checksum.hexdigest())


def _window(meta: exports.FileVerification) -> Window:
    """Return the window of the exported figures. Growth compares with the same days as at the time of the export."""
    name = meta.window.name
    try:
        exported_at = parse(meta.generated_at)
        if name == periods.CUSTOM:
            first, last = date.fromisoformat(meta.window.start), date.fromisoformat(meta.window.end)
            return periods.between(first, last, exported_at)
        window = periods.window(name, exported_at)
    except ValueError as error:
        raise Failure(f"The file that describes {meta.file.name} has an invalid `window`: {error}") from None
    return history.adapt(window)


def _compare_table(
    file: Path, meta: exports.FileVerification, scope: scopes.Scope, days: Window, checksum: files.Checksum
) -> Iterator[files.Difference]:
    known, keys = columns.of_type(meta.type, scope), export_rows.KEYS[meta.type]
    written = [each for each in known if each.name in meta.definitions or each.name in keys]  # older files have fewer
    names, places = [each.name for each in written], [known.index(each) for each in written]
    with export_rows.cells(meta.type, scope, days) as cells:
        rows = checksum.watch(names, ([row[place] for place in places] for row in cells))
        if meta.file.format not in files.READABLE:  # the checksum of the rows says whether any differs
            _require_unchanged(file, meta)
            deque(rows, maxlen=0)
            return
        current: Iterable[output.JSON] = (dict(zip(names, row, strict=True)) for row in rows)
        if meta.file.format == "csv":
            current = map(tables.as_read_from_csv, current)
        yield from files.differences(files.rows(file, meta.file.format, written), current, keys)


def _require_unchanged(file: Path, meta: exports.FileVerification) -> None:
    if not meta_files.is_unchanged(file, meta):
        raise Failure(f"{file} was changed after it was written. The figures in such a file cannot be verified.")


def _compare_report(
    file: Path, meta: exports.FileVerification, scope: scopes.Scope, days: Window, checksum: files.Checksum
) -> Iterator[files.Difference]:
    if meta.rows:
        _require_unchanged(file, meta)
    written = meta.rows or verification.report_rows(files.document(file)["data"])
    found = overview.build_for_print(scope, days, parse(meta.generated_at), verification.compared(written))
    left_out = verification.ADDED - {name for row in written for name in row}  # older files have fewer figures
    every = verification.report_rows(shapes.report_file(found, 0, meta.file.format))
    current = [{name: value for name, value in row.items() if name not in left_out} for row in every]
    for row in current:
        checksum.add(row)
    yield from files.differences(written, current, verification.REPORT_KEYS)
