"""Query strings and responses of the endpoints of listening, hours, milestones and releases (docs/insights.md)."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from musicsvc.server.schemas.answers import Answer, Date, Timestamp
from musicsvc.server.schemas.fields import DIGITS_ONLY, Query, id_list
from musicsvc.server.schemas.insights import Period, with_figures
from musicsvc.store.insights.listening import DEFAULT_DAYS, MOST_ALBUMS, MOST_DAYS
from musicsvc.store.insights.listening.listening import LISTENING

AGAINST = {
    "type": "string",
    "pattern": r"^([1-9][0-9]*(,[1-9][0-9]*)*)?$",
    "description": f"The ids of up to {MOST_ALBUMS} other albums, separated by commas.",
}


class ReleaseQuery(Query):
    """Query string with the albums to compare with, and the number of days."""

    against: Annotated[tuple[int, ...], id_list(MOST_ALBUMS, "albums"), WithJsonSchema(AGAINST)] = ()
    days: Annotated[int, Field(ge=1, le=MOST_DAYS), DIGITS_ONLY] = Field(
        DEFAULT_DAYS, description="Days since the release, the release date included."
    )


class InPeriod(Answer):
    """Base of responses that begin with the period. List it as the last base class: pydantic puts its fields first."""

    period: Period


@with_figures(LISTENING, "completion.")
class Completion(Answer):
    """The share of the track that was heard, in percent; null if no play has a known share."""


@with_figures(LISTENING, completion=Completion)
class ListeningFigures(Answer):
    """Skips, completion, and new and returning listeners in the period."""


class Listening(ListeningFigures, InPeriod):
    """Skips, completion, and new and returning listeners, with the period."""


class HoursOfWeek(Answer):
    """Plays in the period by hour of the week."""

    timezone: Literal["UTC"]
    hours: list[Annotated[list[int], Field(min_length=24, max_length=24)]] = Field(
        min_length=7,
        max_length=7,
        description="A row for each day of the week, Monday first, with the plays of each hour.",
        examples=[[[0] * 24] * 7],
    )


class Hours(HoursOfWeek, InPeriod):
    """Plays by hour of the week, with the period."""


class Milestone(Answer):
    """The time at which a number of plays was reached."""

    count: int = Field(description="100, 1,000, 10,000 and so on.", examples=[1000])
    at: Timestamp = Field(description="The time, rounded down to the hour if single plays of that day were deleted.")


class BestDay(Answer):
    """The day with the most plays; the first such day if there are several."""

    date: Date
    plays: int = Field(examples=[212])


class Milestones(Answer):
    """The milestones reached so far (100, 1,000, 10,000 … plays), and the day with the most plays."""

    plays: list[Milestone]
    best_day: BestDay | None = Field(description="Null if there are no plays.")


class ReleasePoint(Answer):
    """A day since the release; day 0 is the release date."""

    day: int = Field(examples=[0])
    plays: int = Field(examples=[64])
    listeners: int = Field(description="Distinct listeners since the day of the release (day 0).", examples=[51])


class Release(Answer):
    """An album with a point for each day since its release, up to today; no points if it has no release date."""

    id: int
    name: str = Field(examples=["Ragtime Suite"])
    release_date: Date | None
    points: list[ReleasePoint]


class Releases(Answer):
    """The requested album, then the albums to compare it with."""

    days: int = Field(examples=[28])
    releases: list[Release]
