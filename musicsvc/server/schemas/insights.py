"""Query strings and responses of the insights endpoints: plays, listeners and growth (docs/insights.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from musicsvc.server.schemas.answers import Answer, Date, Timestamp, Uri
from musicsvc.server.schemas.catalog import TrackNested
from musicsvc.server.schemas.fields import (
    DIGITS_ONLY,
    LONGEST_RESOURCE,
    MAX_ID,
    SEARCH_NAMES,
    Query,
    Schema,
    Text,
    adding,
    id_list,
    require_unique,
)
from musicsvc.server.schemas.periods import PeriodName, PeriodQuery, TimeframeName
from musicsvc.store.dashboards import comparisons
from musicsvc.store.insights.figures import FIGURES, IN_DATA, Figure
from musicsvc.store.plays.subjects import KINDS, Subject
from musicsvc.wording import LONGEST_NAME

T = TypeVar("T")
KindName = Literal["tracks", "albums", "artists"]


def with_figures(rows: Iterable[Figure], prefix: str = "", **groups: type[Answer]) -> Callable[[Schema], Schema]:
    """Return a decorator that adds the figures of `rows` to a schema: those whose path begins with `prefix`.

    `groups`: the schema of each group of figures, such as `completion` of `completion.mean`.
    """
    found: dict[str, Any] = {}
    for each in rows:
        name, _, rest = each.path.removeprefix(prefix).partition(".")
        if each.path.startswith(prefix):
            found[name] = (groups[name], ...) if rest else field_of(each)
    return adding(found)


def field_of(figure: Figure) -> tuple[Any, Any]:
    """Return the type and the description of a figure. Those with decimals and dates are null if they are unknown."""
    type_: Any = {int: int, float: float | None, str: Date | None}[type(figure.example)]
    return type_, Field(description=figure.definition, examples=[figure.example])


class Found(Answer, Generic[T]):
    """A successful response with its content under `data`."""

    success: Literal[True]
    data: T


@with_figures(FIGURES, "plays.")
class Plays(Answer):
    """Numbers of plays, of all time and in the period."""


@with_figures(FIGURES, "listeners.")
class Listeners(Answer):
    """Exact numbers of distinct listeners, of all time and in the period."""


class Unique(Answer):
    """Exact number of distinct listeners in the period."""

    unique: int = Field(examples=[187])


@with_figures(FIGURES, "engagement.")
class Engagement(Answer):
    """Likes and reposts that were added in the period and still exist."""


@with_figures(IN_DATA, "growth.")
class Growth(Answer):
    """Change in percent from the preceding period of equal length, null if the number was 0 in it; the first play."""


class Period(Answer):
    """The first and last day of the period."""

    name: PeriodName | Literal["custom"] = Field(examples=["30-days"])
    start: Date = Field(examples=["2026-01-02"])
    end: Date = Field(examples=["2026-01-31"])


@with_figures(FIGURES, plays=Plays, listeners=Listeners, engagement=Engagement, growth=Growth)
class AllFigures(Answer):
    """Plays, listeners, likes, reposts and growth."""


class Figures(AllFigures):
    """Plays, listeners, likes, reposts and growth of a track in the period."""

    period: Period


class Ranked(Answer):
    """A track or album in a list of the most played."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    plays: Plays
    listeners: Unique


class OfArtist(Answer):
    """Plays of those tracks of an album that credit the artist, of all time and in the period."""

    total: int = Field(examples=[4501])
    period: int = Field(examples=[380])


class PlaysOfAlbum(Plays):
    """Numbers of plays of an album, of all time and in the period, and which of them are the artist's."""

    of_artist: OfArtist


class RankedAlbum(Ranked):
    """An album in a list of the most played of an artist."""

    plays: PlaysOfAlbum


class AlbumFigures(Figures):
    """Figures of all tracks of an album together, and of each track."""

    tracks: list[Ranked] = Field(description="All tracks, most played in the period first.")


class ArtistFigures(Figures):
    """Figures of all tracks of an artist together, with the most played tracks and albums."""

    followers: int = Field(description="Followers of the account that manages the artist.", examples=[12])
    top_tracks: list[Ranked] = Field(max_length=10, description="Tracks, most played in the period first.")
    top_albums: list[RankedAlbum] = Field(
        max_length=10, description="Albums, those first whose tracks by the artist were played most in the period."
    )
    tracks_count: int = Field(examples=[8])
    albums_count: int = Field(examples=[2])


class Totals(Answer):
    """Totals over all days of a chart; a listener who played on several days is counted once."""

    plays: int = Field(examples=[412])
    listeners: int = Field(examples=[187])
    likes: int = Field(examples=[31])
    reposts: int = Field(examples=[4])


class Point(Answer):
    """Plays, listeners, likes and reposts of one day."""

    date: Date = Field(examples=["2026-01-31"])
    plays: int = Field(examples=[14])
    listeners: int = Field(examples=[11])
    likes: int = Field(examples=[1])
    reposts: int = Field(examples=[0])


class Chart(Answer):
    """A chart with one point for each day, including days without plays."""

    timeframe: TimeframeName | Literal["custom"] = Field(examples=["30d"])
    interval: Literal["day"]
    points: list[Point]
    totals: Totals


class RecentPlay(Answer):
    """A play; equal values of `listener_hash` mean the same listener."""

    played_at: Timestamp
    listener_hash: str = Field(examples=["9b74c9897bac770ffc029102a200c5de"], pattern="^[0-9a-f]{32}$")


class Realtime(Answer):
    """Current listeners and latest plays of a track."""

    track_id: int
    active_listeners: int = Field(description="Distinct listeners in the last 5 minutes.", examples=[3])
    plays_last_hour: int = Field(examples=[17])
    recent_plays: list[RecentPlay] = Field(max_length=20, description="Newest first.")
    updated_at: Timestamp


class Collaborator(Answer):
    """Another artist who has tracks in common with the requested artist."""

    id: int
    name: str = Field(examples=["Clara Schumann"])
    image_small: Uri | None
    verified: bool
    tracks_count: int = Field(description="Number of tracks by both this artist and the requested one.", examples=[3])
    plays: int = Field(description="Plays of these tracks, of all time.", examples=[230])


class Collaborations(Answer):
    """The tracks that an artist shares with other artists, and these artists."""

    total_collaborations: int = Field(description="Number of tracks that the artist shares with others.", examples=[3])
    top_collaborators: list[Collaborator] = Field(max_length=100, description="Artists, most shared tracks first.")
    collaboration_tracks: list[TrackNested] = Field(max_length=100, description="The shared tracks, most played first.")


class FindQuery(Query):
    """Query string with a part of a name, an ISRC or a UPC."""

    other_names: ClassVar = SEARCH_NAMES

    q: Annotated[str, Text(1, LONGEST_NAME)] = Field(
        description="Part of a name, an ISRC or a UPC.", examples=["maple"]
    )
    kind: KindName | None = Field(None, description="Finds only tracks, albums or artists.")


class CompareQuery(PeriodQuery):
    """Query string with two to five tracks, albums or artists, and the period."""

    lists: ClassVar = ("ids",)

    kind: KindName = Field(examples=["tracks"])
    ids: Annotated[
        tuple[Annotated[int, Field(ge=1, le=MAX_ID)], ...],
        id_list(comparisons.MOST, "tracks, albums or artists"),
        AfterValidator(require_unique),
    ] = Field(min_length=2, max_length=comparisons.MOST, examples=[[1, 2]], json_schema_extra={"uniqueItems": True})

    @property
    def subjects(self) -> list[Subject]:
        return [Subject(KINDS[self.kind[:-1]], each) for each in self.ids]

    @property
    def resource(self) -> str:
        """The compared objects, for the log."""
        return " ".join(f"{self.kind}/{each}" for each in self.ids)[:LONGEST_RESOURCE]


class MoversQuery(PeriodQuery):
    """Query string with the kind of what moved, the period, and the number of rows in each direction."""

    kind: KindName = Field(examples=["tracks"])
    limit: Annotated[int, Field(ge=1, le=50), DIGITS_ONLY] = Field(10, description="Rows in each direction.")


class FoundRow(Answer):
    """A track, album or artist that the caller manages."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    artists: list[str] = Field(description="Names; of an artist none.", examples=[["Scott Joplin"]])
    plays_total: int = Field(examples=[4501])


class FoundOfManager(Answer):
    """Artists, albums and tracks of the caller that match: by code first, then by name, ten of each kind at most."""

    artists: list[FoundRow] = Field(max_length=10)
    albums: list[FoundRow] = Field(max_length=10)
    tracks: list[FoundRow] = Field(max_length=10)


class ComparedRow(Answer):
    """A track, album or artist beside others."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    plays: int = Field(examples=[412])
    listeners: int = Field(examples=[187])
    plays_change: float | None = Field(description="Growth of the plays in percent.", examples=[8.4])


class ComparedDay(Answer):
    """Plays and distinct listeners of one day, in the order of the rows."""

    date: Date
    plays: list[int] = Field(examples=[[14, 9]])
    listeners: list[int] = Field(examples=[[11, 7]])


class Comparison(Answer):
    """Two to five tracks, albums or artists beside each other, with a point for each day."""

    period: Period
    rows: list[ComparedRow]
    points: list[ComparedDay]


class Mover(Answer):
    """A track, album or artist with its plays in the period, in the period before, and the difference."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    plays: int = Field(examples=[412])
    before: int = Field(examples=[380])
    change: int = Field(examples=[32])


class Movers(Answer):
    """Managed tracks, albums or artists whose plays grew or fell most, the largest difference first."""

    period: Period
    up: list[Mover] = Field(max_length=50)
    down: list[Mover] = Field(
        max_length=50, examples=[[{"id": 2, "name": "Elite Syncopations", "plays": 251, "before": 290, "change": -39}]]
    )
