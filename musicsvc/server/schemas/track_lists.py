"""Query string of the list of all tracks."""

from typing import Annotated

from pydantic import Field

from musicsvc.server.schemas.catalog_fields import GenreName, QueriedIsrc
from musicsvc.server.schemas.fields import DIGITS_ONLY, MAX_ID, ExternalId, NamePart, Pages
from musicsvc.store.catalog import genres
from musicsvc.store.catalog.track_lists import TrackFilters


class TrackPages(Pages):
    """Query string with page number, page size and filters of the list of tracks."""

    q: NamePart = None
    artist_id: Annotated[int, Field(ge=1, le=MAX_ID), DIGITS_ONLY] | None = Field(
        None, description="Only tracks of the artist with this id."
    )
    genre: GenreName | None = Field(None, description="Only tracks of the genre with this `name` or `display_name`.")
    external_id: ExternalId | None = Field(
        None, description="The id of the track in another service, as imported.", examples=["6habFhsOp2NvshLv26DqMb"]
    )
    isrc: QueriedIsrc | None = None

    def to_filters(self) -> TrackFilters:
        """Return the filters of the query as a parameter for store functions."""
        slug = None if self.genre is None else genres.slug(self.genre)
        return TrackFilters(self.artist_id, slug, self.external_id, self.isrc, self.q)
