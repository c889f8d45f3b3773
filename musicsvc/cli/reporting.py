"""`musicsvc export report`: write the report as PDF, Excel, CSV or JSON."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import typer

from musicsvc.cli import meta_files
from musicsvc.cli.output import JSON
from musicsvc.cli.output_file import folder_of, open_output
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid
from musicsvc.reports import report_tables
from musicsvc.reports import verification as files
from musicsvc.reports.formats import FORMATS as ALL_FORMATS
from musicsvc.server.shapes import columns, envelope, verification
from musicsvc.server.shapes import exports as shapes
from musicsvc.store.accounts import users
from musicsvc.store.insights import overview, scopes
from musicsvc.store.insights.listening import DEFAULT_DAYS, MOST_ALBUMS, releases
from musicsvc.store.plays import history
from musicsvc.store.plays.periods import Window, to_date

FORMATS = {each.id: each for each in ALL_FORMATS.values() if each.reports}


class Wanted(NamedTuple):
    """The content of a report: the plays in one window, of everything, of one account or of one artist.

    `user`: the e-mail address of the account. `albums`: the ids of the albums whose plays are compared, in the first
    `days` days since the release of each; None: the newest albums. `bom`: a CSV file begins with a byte order mark.
    """

    user: str | None
    artist: int | None
    window: Window
    now: int
    albums: tuple[int, ...] | None = None
    days: int = DEFAULT_DAYS
    bom: bool = False


def albums(chosen: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the chosen albums without repeats, or None if there are none. Raises BadParameter for too many."""
    if not chosen:
        return None
    found = tuple(dict.fromkeys(chosen))
    if len(found) > MOST_ALBUMS + 1:
        raise typer.BadParameter(f"Use at most {MOST_ALBUMS + 1} albums.", param_hint="--release")
    return found


def scope(user: str | None, artist: int | None) -> scopes.Scope:
    return scopes.Scope(None if user is None else users.by_email(user).id, artist)


def write(session: Session, wanted: Wanted, form: str, paper: str, out: Path) -> None:
    """Write the report to `out` in the format `form`, and its description to `FILE.meta.json`."""
    with session.store() as store, open_output(out) as file:
        try:
            found_scope, found = store.read(lambda: _read(wanted)).result()
        except Invalid as error:
            raise typer.BadParameter(error.errors["releases"], param_hint="--release") from None
        data = shapes.report_file(found, wanted.now, form)
        rows = verification.report_rows(data)
        checksum = files.of_rows(rows)
        described = verification.verification("report", found_scope, found.figures.window, wanted.now, checksum)
        if form == "pdf":
            from musicsvc.reports import pdf

            file.write(pdf.render(shapes.printed(found, wanted.now), paper))
        else:
            if form == "xlsx":
                data = shapes.for_workbook(data, found)
            file.write(BOM_UTF8 * wanted.bom)
            file.writelines(_pieces(form, data, described, folder_of(out)))
    meta_files.write(out, form, described, () if form == "json" else rows)
    if found.last_played is not None:
        session.echo(f"There were no plays in these days. The newest plays are from {to_date(found.last_played)}.")


def _read(wanted: Wanted) -> tuple[scopes.Scope, overview.Overview]:
    found = scope(wanted.user, wanted.artist)
    compared = releases.Compared(wanted.albums, wanted.days)
    return found, overview.build_for_print(found, history.adapt(wanted.window), wanted.now, compared)


def _pieces(form: str, data: JSON, described: JSON, temporary: Path | None) -> Iterable[bytes]:
    """Return the pieces of the report as a file in the format `form`: `json`, `csv` or `xlsx`.

    `temporary`: the folder for temporary files; None: that of the system.
    """
    import orjson

    if form == "json":
        return [orjson.dumps(envelope.success(data | {"verification": described}))]
    if form == "csv":
        return report_tables.csv(data)
    return report_tables.workbook(data, columns.OF_REPORT, temporary)
