"""Requests and responses of exports: plays, listeners, likes and reposts as files (docs/exports.md)."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from musicsvc.reports.columns import COLUMNS, Kind
from musicsvc.server.schemas.answers import Answer, Date, Timestamp
from musicsvc.server.schemas.fields import TRIMMED, Id, Input, adding, replace_null
from musicsvc.server.schemas.insights import AllFigures, Chart, Period, Ranked, field_of
from musicsvc.server.schemas.listening import HoursOfWeek, ListeningFigures, Milestones, Releases
from musicsvc.server.schemas.periods import PeriodIn
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.insights import export_rows, figures
from musicsvc.store.insights.export_rows import OF_DELETED as OF_DELETED_NAME
from musicsvc.store.insights.scopes import Scope

SUBJECTS = {"artist_id": "artists", "album_id": "albums", "track_id": "tracks"}
ONLY = "Export only this {}, which you must manage; at most one of artist_id, album_id and track_id."
TypeName = Literal["tracks", "albums", "artists", "plays"]
WholeDay = Annotated[
    Literal["whole-day"] | SkipJsonSchema[None],
    Field(description="Present only if growth compares a part of today with a whole day, whose plays were deleted."),
]


class ScopeFields(Input):
    """Base of schemas that limit an export to one artist, album or track."""

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], context: Mapping[str, Any]) -> Any:
        """Return a message for each field that names a second artist, album or track."""
        first, *others = [name for name in SUBJECTS if sent.get(name) is not None] or [""]
        doubled = {name: f"Must not be given together with {first}." for name in others if name not in faults}
        return super().check_together(sent, faults, context) | doubled

    def scope(self, caller: Identity) -> Scope:
        """Return what the export covers. Raises NotFound or Forbidden for a subject that the caller may not read."""
        found = Scope(caller.user_id, *(getattr(self, name) for name in SUBJECTS))
        if found.subject is not None:
            figures.check_manager(found.subject, caller.user_id)
        return found


class ScopeIn(ScopeFields, PeriodIn):
    """The period of an export, and the artist, album or track to which it is limited."""

    subjects: ClassVar = SUBJECTS

    artist_id: Id | None = Field(None, description=ONLY.format("artist"), examples=[None])
    album_id: Id | None = Field(None, description=ONLY.format("album"), examples=[None])
    track_id: Id | None = Field(None, description=ONLY.format("track"), examples=[None])


class ExportIn(ScopeIn):
    """The content and period of an export."""

    type: Annotated[TypeName, TRIMMED, replace_null("tracks", TypeName)] = Field(
        "tracks", description="`plays`: a row for each day and track with plays."
    )


class ReportIn(ScopeIn):
    """The period of a report, with or without figures for each day."""

    include_charts: Annotated[
        bool, Field(strict=True, description="Add the figures of each day."), replace_null(value=False, kind=bool)
    ] = False
    include_listening: Annotated[
        bool,
        Field(strict=True, description="Add listening, hours of the week, milestones and releases."),
        replace_null(value=False, kind=bool),
    ] = False


class Format(Answer):
    """A file format."""

    id: Literal["csv", "json", "pdf"]
    name: str = Field(examples=["CSV"])
    description: str = Field(examples=["A table for spreadsheets."])


class Formats(Answer):
    """A response with the file formats of exports."""

    success: Literal[True]
    formats: list[Format]


EXAMPLES = {
    "isrc": "USRC17607839",
    "upc": "036000291452",
    "album": "Classic Rags",
    "label": "Ragtime Records",
    "release_date": "1899-09-18",
    "album_artists": "Scott Joplin",
    "external_id": "T-1",
    "album_external_id": "A-1",
}


def _codes(names: Collection[str]) -> dict[str, Any]:
    """Return the fields, each with its description, that other files know tracks or albums by."""
    columns = {name: (COLUMNS[name], EXAMPLES[name]) for name in names}
    return {
        name: (
            (Date if each.kind is Kind.DATE else str) | None,
            Field(description=each.definition, examples=[example]),
        )
        for name, (each, example) in columns.items()
    }


@adding({each.name: field_of(each) for each in figures.IN_DATA})
class Row(Answer):
    """Plays, listeners, likes and reposts of a track, album or artist; the keys are the column names in CSV."""


@adding(_codes((*export_rows.OF_TRACK, *export_rows.OF_IMPORTS)))
class TrackRow(Row):
    """A row of an export of tracks."""

    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    artists: str = Field(description="The artists, separated by `; `.", examples=["Scott Joplin; Arthur Marshall"])


@adding(_codes(export_rows.OF_ALBUM))
class AlbumRow(Row):
    """A row of an export of albums."""

    album_id: int
    album: str = Field(examples=["Classic Rags"])
    artists: str = Field(description="The artists, separated by `; `.", examples=["Scott Joplin"])
    plays_of_artist_period: int | SkipJsonSchema[None] = Field(
        None, description=f"{COLUMNS[export_rows.OF_ARTIST].definition} Present only with artist_id.", examples=[380]
    )


class ArtistRow(Row):
    """A row of an export of artists."""

    artist_id: int
    artist: str = Field(examples=["Scott Joplin"])


@adding(_codes(export_rows.OF_TRACK))
class PlaysRow(Answer):
    """A row of an export of plays: the plays of a track on one day."""

    date: str = Field(examples=["2026-01-31"], json_schema_extra={"format": "date"})
    track_id: int
    track: str = Field(examples=["Maple Leaf Rag"])
    artists: str = Field(description="The artists, separated by `; `.", examples=["Scott Joplin; Arthur Marshall"])
    plays: int
    listeners: int


def _empty(names: Collection[str]) -> dict[str, Any]:
    return {name: (None, Field(description="Null.", examples=[None])) for name in names}


NULL_FIGURES = {each.name for each in figures.IN_DATA} - {"plays_total", "plays_period"}
OF_DELETED = {
    "track": (Literal[OF_DELETED_NAME], Field(description="In place of a name.")),
    "artists": (Literal[""], Field(description="Empty.")),
    **_empty(("track_id", *export_rows.OF_TRACK)),
}


@adding(OF_DELETED | _empty(sorted({*NULL_FIGURES, *export_rows.OF_IMPORTS})))
class DeletedTracksRow(TrackRow):
    """The last row of an export of tracks: the plays of deleted tracks, if any count in what the export covers."""


@adding(OF_DELETED | _empty(["listeners"]))
class DeletedPlaysRow(PlaysRow):
    """The last row of a day in an export of plays: the plays of deleted tracks on that day, if there are any."""


class ExportScope(Answer):
    """The account and the artist, album or track to which an export is limited; null means no limit."""

    user_id: int | None
    artist_id: int | None
    album_id: int | None = None
    track_id: int | None = None


class ExportWindow(Answer):
    """The name of a window, and its first and last day."""

    name: str = Field(examples=["30-days"])
    start: Date = Field(examples=["2026-01-02"])
    end: Date = Field(examples=["2026-01-31"])


class Between(Answer):
    """A range of time from `from` (included) to `until` (excluded)."""

    since: Timestamp = Field(alias="from")
    until: Timestamp


class Verification(Answer):
    """The description of an export by which it can be verified (docs/exports.md, Verification)."""

    type: Literal[TypeName, "report"]
    generated_at: Timestamp
    scope: ExportScope
    window: ExportWindow
    compared_with: Between | None = Field(
        description="The time range that growth compares with. Null if the period is all time."
    )
    growth_basis: Literal["like-for-like", "whole-day"] | None = Field(
        description="`whole-day`: a part of today is compared with a whole day. Null if the period is all time."
    )
    definitions: dict[str, str] = Field(
        description="The meaning of each column, by name.", examples=[{"plays_total": "Plays of all time."}]
    )
    row_count: int
    sha256: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="Checksum of the rows in canonical JSON (RFC 8785).",
        examples=["0" * 64],
    )


class Export(Answer):
    """An export: rows of one type, all read at the same time."""

    type: TypeName
    period: Period
    generated_at: Timestamp
    growth_basis: WholeDay = None
    rows: list[TrackRow | AlbumRow | ArtistRow | PlaysRow | DeletedTracksRow | DeletedPlaysRow]
    verification: Verification


class VerifiedFile(Answer):
    """The file that an export was written to, and the checksum over its bytes."""

    name: str
    format: str
    sha256: str


class FileVerification(Verification):
    """The content of `FILE.meta.json`. `rows` has the figures of a report, which cannot be read from a PDF."""

    file: VerifiedFile
    rows: list[dict[str, Any]] = Field(default_factory=list)


class Summary(AllFigures):
    """Totals of all that the report covers; each distinct listener is counted once."""

    tracks_count: int
    albums_count: int
    artists_count: int


class SubjectMilestones(Milestones):
    """The milestones of one of the most played tracks, albums or artists."""

    kind: Literal["track", "album", "artist"]
    id: int
    name: str = Field(examples=["Maple Leaf Rag"])


WITH_LISTENING = Field(None, description="Present only if `include_listening` is true.")


class Report(Answer):
    """A report on all that the caller manages, or on one artist, album or track; all figures are of one moment."""

    period: Period
    generated_at: Timestamp
    growth_basis: WholeDay = None
    summary: Summary
    top_tracks: list[Ranked] = Field(max_length=10, description="Tracks, most played in the period first.")
    charts: Chart | SkipJsonSchema[None] = Field(None, description="Present only if `include_charts` is true.")
    listening: ListeningFigures | SkipJsonSchema[None] = WITH_LISTENING
    hours: HoursOfWeek | SkipJsonSchema[None] = WITH_LISTENING
    milestones: list[SubjectMilestones] | SkipJsonSchema[None] = Field(
        None,
        description="Of the most played artists, albums and tracks. Present only if `include_listening` is true.",
    )
    releases: Releases | SkipJsonSchema[None] = WITH_LISTENING
