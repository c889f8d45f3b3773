"""Query string and response of the endpoints that explain figures (docs/insights.md, Explanations)."""

from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from pydantic import Field

from musicsvc.server.schemas.answers import Answer, Date, Timestamp
from musicsvc.server.schemas.insights import Figures
from musicsvc.server.schemas.listening import Hours, Listening, Milestones, Releases
from musicsvc.server.schemas.periods import PeriodQuery

MOST_DAYS = 366


class ExplainQuery(PeriodQuery):
    """Query string with the period whose figures are counted again, at most 366 days."""

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], context: Mapping[str, Any]) -> Any:
        """Return a message for dates that are not allowed, or more than 366 days apart."""
        found = super().check_together(sent, faults, context)
        if not (found or faults) and "to" in sent:
            first, last = (date.fromisoformat(sent[each]) for each in ("from", "to"))
            if (last - first).days >= MOST_DAYS:
                return {"to": f"Must be at most {MOST_DAYS} days, from the first to the last."}
        return found


class Span(Answer):
    """A period: its name, its whole days, and the instants at which it begins and ends."""

    name: str = Field(examples=["30-days"])
    days: int = Field(examples=[30])
    starts_at: Timestamp
    ends_at: Timestamp


class Numbers(Answer):
    """Plays and distinct listeners."""

    plays: int = Field(examples=[412])
    listeners: int = Field(examples=[187])


class DayCounted(Numbers):
    """Plays and distinct listeners of a day with plays."""

    date: Date


class Calculation(Answer):
    """A growth: the calculation with its numbers, and the result in percent."""

    formula: str = Field(examples=["(412 - 380) * 100 / 380"])
    percent: float | None = Field(examples=[8.4])


class ListeningCounted(Listening):
    """Figures of listening; those of all time are null if they were not counted again."""

    new_listeners: int | None = Field(description="Listeners whose first play of all time is in the period.")
    returning_listeners: int | None = Field(description="Listeners who had also played before the period.")


class Details(Answer):
    """Listening, plays by hour, milestones and, of an album, its release; null if they were not counted again."""

    listening: ListeningCounted | None
    hours: Hours | None
    milestones: Milestones | None
    release: Releases | None = None


class Listened(Answer):
    """Figures of listening: counted again, and as the API returns them."""

    plays_without_duration: int | None
    plays_of_unknown_length: int | None
    counted: Details
    served: Details


class Difference(Answer):
    """A figure that differs."""

    figure: str = Field(examples=["plays in the window"])
    served: float | str | None
    counted: float | str | None


class Explanation(Answer):
    """Figures counted again from single plays, those of the API, and their differences."""

    kind: str = Field(examples=["track"])
    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    window: Span
    window_before: Span
    tracks: int = Field(description="Number of tracks whose plays count.", examples=[1])
    plays_kept_from: Date | None = Field(description="Plays before this day were deleted.")
    not_stored: str = Field(examples=["Each stored play counts once."])
    not_recounted: str | None = Field(description="Why some figures cannot be counted again.", examples=[None])
    days: list[DayCounted]
    counted: dict[str, Numbers | None] = Field(
        description="Counted again: `period`, `before`, `all_time`; null if plays of that time were deleted."
    )
    growth: dict[str, Calculation] = Field(description="Of `plays` and of `listeners`.")
    listening: Listened
    served: Figures
    differences: list[Difference] = Field(description="Empty, unless the stored counts are wrong.")
    equal: bool
