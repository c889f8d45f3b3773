"""Query string and response of the search for artists, albums, tracks and playlists (docs/search.md)."""

from typing import Annotated, ClassVar

from pydantic import Field

from musicsvc.server.schemas.answers import Success
from musicsvc.server.schemas.catalog import Album, Artist, Track
from musicsvc.server.schemas.fields import SEARCH_NAMES, Query, Text
from musicsvc.server.schemas.playlists import Playlist


class CatalogQuery(Query):
    """Query string of a search in the catalog; `query` is another name for `q`."""

    other_names: ClassVar = SEARCH_NAMES

    q: Annotated[str, Text(1, 100)] = Field(
        description="Part of a name, ignoring case and accents, or an ISRC or UPC; one or two characters match only"
        " word starts.",
        examples=["maple"],
    )


class Found(Success):
    """A response with up to ten matches of each kind, the best match first."""

    artists: list[Artist]
    albums: list[Album]
    tracks: list[Track]
    playlists: list[Playlist]
