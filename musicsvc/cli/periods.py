"""The options `--period`, `--from` and `--to` of commands that show or export figures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Annotated

import typer

from musicsvc.cli.options import option
from musicsvc.clock import parse_date
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import Window

PERIOD_HELP = f"{periods.NAMES.replace(periods.DEFAULT, f'{periods.DEFAULT} (default)')}: whole days in UTC."


def _date(text: str) -> date:
    try:
        return parse_date(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Period = Annotated[str | None, option("PERIOD", PERIOD_HELP, "--period")]
First = Annotated[
    date | None, option("DATE", "The first day, in place of a period; needs --to.", "--from", parser=_date)
]
Last = Annotated[date | None, option("DATE", "The last day, today at the latest; needs --from.", "--to", parser=_date)]

Since = Annotated[
    date | None, option("DATE", "The first day, in place of a period; needs --until.", "--since", parser=_date)
]
Until = Annotated[
    date | None, option("DATE", "The last day, that of the dump at the latest; needs --since.", "--until", parser=_date)
]


@dataclass(frozen=True, slots=True)
class PeriodOptions:
    """The options that select the period that a command shows."""

    period: Period = None
    first: First = None
    last: Last = None

    def window(self, now: int) -> Window:
        """Return the window that the options select. Raises BadParameter if they do not go together."""
        return choose(self.period, self.first, self.last, now)


def choose(
    period: str | None, first: date | None, last: date | None, now: int, names: tuple[str, str] = ("--from", "--to")
) -> Window:
    """Return the window that the options select. Raises BadParameter if they do not go together.

    `names`: those of the options for `first` and `last`.
    """
    if first is None and last is None:
        try:
            return periods.window(periods.DEFAULT if period is None else period, now)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--period") from None
    if period is not None:
        raise typer.BadParameter(f"Use either --period or {names[0]} and {names[1]}.", param_hint="--period")
    if first is None or last is None:
        hint = names[0] if first is None else names[1]
        raise typer.BadParameter(f"Use {names[0]} and {names[1]} together.", param_hint=hint)
    try:
        return periods.between(first, last, now)
    except periods.BadDatesError as error:
        raise typer.BadParameter(str(error), param_hint=names[error.field == "to"]) from None
