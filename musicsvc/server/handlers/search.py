"""Search the catalog and public playlists."""

from collections.abc import Sequence

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.search import CatalogQuery
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.catalog import playlist
from musicsvc.server.shapes.envelope import JSON, Site, ok
from musicsvc.store.catalog import albums, search, tracks
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.playlists import playlists


def index(query: CatalogQuery, site: Site, answer: AnswerBuilder) -> JSON:
    """Search artists, albums, tracks and public playlists, ten of each, the best match first."""
    found = playlists.find_public(query.q, search.MOST)
    return ok(
        artists=[shapes.artist_full(row) for row in search.find_artists(query.q)],
        albums=answer.page(search.find_albums(query.q), _albums),
        tracks=answer.page(search.find_tracks(query.q), _tracks),
        playlists=[playlist(row, site) for row in found],
    )


def _albums(rows: Sequence[AlbumRow]) -> list[JSON]:
    return [shapes.album_full(row) for row in albums.with_contents(rows)]


def _tracks(rows: Sequence[TrackRow]) -> list[JSON]:
    return [shapes.track_full(row) for row in tracks.complete(rows)]
