"""`musicsvc import template`: write a catalog file with a column for each field and two example rows."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from typing import IO, Annotated, Literal

import typer

from musicsvc.cli.exporting import Out
from musicsvc.cli.options import option
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.cli.session import Session
from musicsvc.store.importing.catalog import rows

Format = Annotated[
    Literal["csv", "xlsx"] | None,
    option("FORMAT", "csv or xlsx; default: the suffix of the output file, or csv.", "--format"),
]
WIDTH = 18  # of a column, in characters


def template(context: typer.Context, form: Format = None, out: Out = STDOUT) -> None:
    """Write a catalog file to fill in: all fields, and two example rows."""
    found = {name: field.examples for name, field in rows.FIELDS.items() if field.examples is not None}
    chosen = form or ("xlsx" if out.suffix.lower() == ".xlsx" else "csv")
    if chosen == "xlsx" and out == STDOUT and sys.stdout.isatty():
        raise typer.BadParameter(
            "A workbook cannot be shown in a terminal. Name an output file.", param_hint="--output"
        )
    with open_output(out) as file:
        (_write_csv if chosen == "csv" else _write_xlsx)(file, [[*found], *zip(*found.values(), strict=True)])
    if out != STDOUT:
        Session.from_context(context).echo(f"Written to {out}.")


def _write_csv(file: IO[bytes], rows: Sequence[Sequence[str]]) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="")
    csv.writer(text).writerows(rows)
    text.flush()
    text.detach()


def _write_xlsx(file: IO[bytes], rows: Sequence[Sequence[str]]) -> None:
    """Write a workbook whose cells are texts, so that a UPC keeps its zeros and 3:45 is no time of day."""
    import xlsxwriter

    with xlsxwriter.Workbook(file, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Catalog")
        sheet.set_column(0, len(rows[0]) - 1, WIDTH, book.add_format({"num_format": "@"}))
        for at, row in enumerate(rows):
            for column, cell in enumerate(row):
                sheet.write_string(at, column, cell)
        sheet.freeze_panes(1, 0)
