"""Bodies and answers of the exports (docs/exports.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from musicsvc.server.schemas.answers import Answer, Timestamp
from musicsvc.server.schemas.fields import TRIMMED, Body, replace_null
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
Growing = Annotated[float | None, Field(description="Percent against the period before, null if that had none.")]


class PeriodIn(Body):
    """Days of the export."""

    period: Annotated[PeriodName, TRIMMED, replace_null("30-days", PeriodName)] = Field("30-days", description=PERIOD)


class ExportIn(PeriodIn):
    """Content and days of the export."""

    type: Annotated[TypeName, TRIMMED, replace_null("tracks", TypeName)] = Field(
        "tracks", description="`plays`: a row for each day and track with plays."
    )


class ReportIn(PeriodIn):
    """Days of the report, with or without figures of each day."""

    include_charts: Annotated[
        bool, Field(strict=True, description="Add the figures of each day."), replace_null(value=False, kind=bool)
    ] = False


class Format(Answer):
    """A file format."""

    id: Literal["csv", "json", "pdf"]
    name: str = Field(examples=["CSV"])
    description: str = Field(examples=["A table for spreadsheets."])


class Formats(Answer):
    """The file formats of exports."""

    success: Literal[True]
    formats: list[Format]


class Row(Answer):
    """Figures of a track, album or artist, under the names of the columns in CSV."""

    plays_total: int
    plays_period: int
    listeners_total: int
    listeners_period: int
    likes: int
    reposts: int
    plays_change: Growing
    listeners_change: Growing


class TrackRow(Row):
    """Figures of a track."""

    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    artists: str = Field(description="Their names, separated by `; `.", examples=["Scott Joplin; Arthur Marshall"])


class AlbumRow(Row):
    """Figures of an album."""

    album_id: int
    album: str = Field(examples=["Classic Rags"])
    artists: str = Field(description="Their names, separated by `; `.", examples=["Scott Joplin"])


class ArtistRow(Row):
    """Figures of an artist."""

    artist_id: int
    artist: str = Field(examples=["Scott Joplin"])


class PlaysRow(Answer):
    """Plays of a track on a day."""

    date: str = Field(examples=["2026-01-31"], json_schema_extra={"format": "date"})
    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    plays: int
    listeners: int


class Export(Answer):
    """Rows of one type, read at one moment."""

    type: TypeName
    period: Period
    generated_at: Timestamp
    rows: list[TrackRow | AlbumRow | ArtistRow | PlaysRow]


class Summary(Answer):
    """Totals of everything that the caller manages; a listener counts once."""

    plays: Plays
    listeners: Listeners
    engagement: Engagement
    growth: Growth
    tracks_count: int
    albums_count: int
    artists_count: int


class Report(Answer):
    """A report on everything that the caller manages, read at one moment."""

    period: Period
    generated_at: Timestamp
    summary: Summary
    top_tracks: list[Ranked] = Field(max_length=10, description="Most played in the period first.")
    charts: Chart | SkipJsonSchema[None] = Field(None, description="Only if `include_charts` is true.")
