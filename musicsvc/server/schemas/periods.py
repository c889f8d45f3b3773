"""The period of figures and exports: one of four names, or two dates (docs/insights.md)."""

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, WithJsonSchema

from musicsvc.clock import parse_date
from musicsvc.server.schemas.fields import TRIMMED, Body, Input, Query, replace_null
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import Window

PeriodName = Literal["7-days", "30-days", "90-days", "1-year"]
TimeframeName = Literal["7d", "30d", "90d", "1y"]
PERIOD = "A period of whole days in UTC; the last day is today."
NAMES = ("period", "timeframe")
FROM = "In place of the name of a period: its first day, in UTC; only with `to`."
USE = "Use `{}` instead: {}."
TO = "The last day, not after today; only with `from`."


def _parse_date(value: Any) -> Any:
    if value is None or isinstance(value, date):
        return value
    return parse_date(value if isinstance(value, str) else "")


# Without an example: Swagger UI would send it beside the example of the period, which is refused.
DATE_SCHEMA = {"type": "string", "format": "date"}
QueryDate = Annotated[date | None, BeforeValidator(_parse_date), WithJsonSchema(DATE_SCHEMA)]
BodyDate = Annotated[
    date | None, BeforeValidator(_parse_date), TRIMMED, WithJsonSchema({"anyOf": [DATE_SCHEMA, {"type": "null"}]})
]


class Period(Input):
    """Base of schemas that take a period, by its name or by its first and last day. NAME: the field of the name."""

    NAME: ClassVar = "period"
    misnamed: ClassVar = {"timeframe": USE.format("period", ", ".join(get_args(PeriodName)))}

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], context: Mapping[str, Any]) -> Any:
        """Return an error message for each date that is not allowed, and for a period under the other name."""
        wrong = {name: message for name, message in cls.misnamed.items() if sent.get(name) is not None}
        return check_dates(sent, faults, context["now"]) | wrong

    def window(self, now: int) -> Window:
        fields: Any = self
        if fields.first is not None and fields.last is not None:
            return periods.between(fields.first, fields.last, now)
        name = getattr(fields, self.NAME)
        return periods.window(periods.TIMEFRAMES.get(name, name), now)


class PeriodQuery(Period, Query):
    """Query string with the period that the figures cover."""

    names_to_check: ClassVar = NAMES

    period: PeriodName = Field("30-days", description=PERIOD)
    first: QueryDate = Field(None, alias="from", description=FROM)
    last: QueryDate = Field(None, alias="to", description=TO)


class TimeframeQuery(Period, Query):
    """Query string with the timeframe that a chart covers."""

    NAME: ClassVar = "timeframe"
    misnamed: ClassVar = {"period": USE.format("timeframe", ", ".join(get_args(TimeframeName)))}
    names_to_check: ClassVar = NAMES

    timeframe: TimeframeName = Field("30d", description=PERIOD)
    first: QueryDate = Field(None, alias="from", description=FROM)
    last: QueryDate = Field(None, alias="to", description=TO)


class PeriodIn(Period, Body):
    """The period of an export."""

    period: Annotated[PeriodName, TRIMMED, replace_null("30-days", PeriodName)] = Field("30-days", description=PERIOD)
    first: BodyDate = Field(None, alias="from", description=FROM, examples=[None])
    last: BodyDate = Field(None, alias="to", description=TO, examples=[None])


def check_dates(sent: Mapping[str, Any], faults: Collection[str], now: int) -> dict[str, str]:
    """Map `from` or `to` to an error message if the dates are not allowed, or if the request also names a period."""
    given = [each for each in ("from", "to") if sent.get(each) is not None]
    named = [each for each in NAMES if sent.get(each) is not None]
    if given and named:
        message = f"Must not be given together with {named[0]}."
        return {each: message for each in given if each not in faults}
    if len(given) == 1:
        (missing,) = {"from", "to"} - {*given}
        return {missing: f"This field is required with {given[0]}."}
    if not given or "from" in faults or "to" in faults:
        return {}
    first, last = (date.fromisoformat(sent[each].strip()) for each in given)
    try:
        periods.check_dates(first, last, now)
    except periods.BadDatesError as error:
        return {error.field: str(error)}
    return {}
