"""Bodies and answers of the exports (docs/exports.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from musicsvc.server.schemas.answers import Answer, Timestamp
from musicsvc.server.schemas.fields import TRIMMED, Body, null_is
from musicsvc.server.schemas.insights import (
    PERIOD,
    Chart,
    Engagement,
    Growth,
    Listeners,
    Period,
    PeriodName,
    Plays,
    Ranked,
)

TypeName = Literal["tracks", "albums", "artists", "plays"]
Growing = Annotated[float | None, Field(description="Percent against the period before; null where that had none.")]


class PeriodIn(Body):
    """Which days are asked for."""

    period: Annotated[PeriodName, TRIMMED, null_is("30-days", PeriodName)] = Field("30-days", description=PERIOD)


class ExportIn(PeriodIn):
    """What is asked for, and of which days."""

    type: Annotated[TypeName, TRIMMED, null_is("tracks", TypeName)] = Field(
        "tracks", description="`plays`: a row for each day and track with any."
    )


class ReportIn(PeriodIn):
    """Which days are asked for, and whether day by day as well."""

    include_charts: Annotated[
        bool, Field(strict=True, description="Add the figures of each day."), null_is(value=False, kind=bool)
    ] = False


class Format(Answer):
    """A kind of file."""

    id: Literal["csv", "json", "pdf"]
    name: str = Field(examples=["CSV"])
    description: str = Field(examples=["A table for spreadsheets."])


class Formats(Answer):
    """The kinds of file that figures can be exported as."""

    success: Literal[True]
    formats: list[Format]


class Row(Answer):
    """The figures of a track, album or artist, named as the columns of the CSV file."""

    plays_total: int
    plays_period: int
    listeners_total: int
    listeners_period: int
    likes: int
    reposts: int
    plays_change: Growing
    listeners_change: Growing


class TrackRow(Row):
    """A track."""

    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    artists: str = Field(description="Their names, between them `; `.", examples=["Scott Joplin; Arthur Marshall"])


class AlbumRow(Row):
    """An album."""

    album_id: int
    album: str = Field(examples=["Classic Rags"])
    artists: str = Field(description="Their names, between them `; `.", examples=["Scott Joplin"])


class ArtistRow(Row):
    """An artist."""

    artist_id: int
    artist: str = Field(examples=["Scott Joplin"])


class PlaysRow(Answer):
    """A track on a day."""

    date: str = Field(examples=["2026-01-31"], json_schema_extra={"format": "date"})
    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    plays: int
    listeners: int


class Export(Answer):
    """Rows of one type, all of one moment."""

    type: TypeName
    period: Period
    generated_at: Timestamp
    rows: list[TrackRow | AlbumRow | ArtistRow | PlaysRow]


class Summary(Answer):
    """Everything that the caller manages as one; a listener is counted once."""

    plays: Plays
    listeners: Listeners
    engagement: Engagement
    growth: Growth
    tracks_count: int
    albums_count: int
    artists_count: int


class Report(Answer):
    """Everything that the caller manages, at a moment."""

    period: Period
    generated_at: Timestamp
    summary: Summary
    top_tracks: list[Ranked] = Field(max_length=10, description="Most played in the period first.")
    charts: Chart | SkipJsonSchema[None] = Field(None, description="Only where `include_charts` is true.")
