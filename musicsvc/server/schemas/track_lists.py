"""Query string of the list of all tracks."""

from typing import Annotated, ClassVar

from pydantic import Field

from musicsvc.server.schemas.catalog_fields import GenreName, QueriedIsrc
from musicsvc.server.schemas.fields import SEARCH_NAMES, ExternalId, NamePart, Pages, QueriedId, empty_is_none
from musicsvc.store.catalog import genres
from musicsvc.store.catalog.track_lists import TrackFilters


class TrackPages(Pages):
    """Query string with page number, page size and filters of the list of tracks."""

    other_names: ClassVar = Pages.other_names | SEARCH_NAMES

    q: NamePart = None
    artist_id: Annotated[QueriedId | None, empty_is_none(QueriedId)] = Field(
        None, description="Only tracks of the artist with this id."
    )
    genre: Annotated[GenreName | None, empty_is_none(GenreName)] = Field(
        None, description="Only tracks of the genre with this `name` or `display_name`."
    )
    external_id: Annotated[ExternalId | None, empty_is_none(ExternalId)] = Field(
        None,
        description="The id of the track in another service, as imported; of Spotify and MusicBrainz in any form.",
        examples=["6habFhsOp2NvshLv26DqMb"],
    )
    isrc: Annotated[QueriedIsrc | None, empty_is_none(QueriedIsrc)] = None

    def to_filters(self) -> TrackFilters:
        """Return the filters of the query as a parameter for store functions."""
        slug = None if self.genre is None else genres.slug(self.genre)
        return TrackFilters(self.artist_id, slug, self.external_id, self.isrc, self.q)
