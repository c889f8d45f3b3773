"""The options `--period`, `--from` and `--to` of commands that show or export figures."""

from datetime import date
from typing import Annotated

import typer

from musicsvc.cli.options import option
from musicsvc.store.plays.periods import Window

PERIOD_HELP = (
    "7-days, 30-days (default), 90-days, 1-year, today, yesterday, this-month, last-month, 2026-10, 2026-Q3, 2026 or"
    " all: whole days in UTC."
)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a date such as 2026-01-31.") from None


Period = Annotated[str | None, option("PERIOD", PERIOD_HELP, "--period")]
First = Annotated[
    date | None, option("DATE", "The first day, in place of a period; needs --to.", "--from", parser=_date)
]
Last = Annotated[date | None, option("DATE", "The last day, today at the latest; needs --from.", "--to", parser=_date)]


def choose(period: str | None, first: date | None, last: date | None, now: int) -> "Window":
    """Return the window that `--period`, `--from` and `--to` select. Raises BadParameter if they do not go together."""
    from musicsvc.store.plays import periods

    if first is None and last is None:
        try:
            return periods.window(periods.DEFAULT if period is None else period, now)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--period") from None
    if period is not None:
        raise typer.BadParameter("Use either --period or --from and --to.", param_hint="--period")
    if first is None or last is None:
        hint = "--from" if first is None else "--to"
        raise typer.BadParameter("Use --from and --to together.", param_hint=hint)
    try:
        return periods.between(first, last, now)
    except periods.BadDatesError as error:
        raise typer.BadParameter(str(error), param_hint=f"--{error.field}") from None
