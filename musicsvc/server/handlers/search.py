"""Search the catalog and public playlists."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.search import CatalogQuery
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.catalog import playlist
from musicsvc.server.shapes.envelope import JSON, Site, ok
from musicsvc.store.catalog import albums, search, tracks
from musicsvc.store.playlists import playlists


def index(query: CatalogQuery, site: Site, answer: AnswerBuilder) -> JSON:
    """Search artists, albums, tracks and public playlists, ten of each, the best match first."""
    found = playlists.find_public(query.q, search.MOST)
    return ok(
        artists=[shapes.artist_full(row) for row in search.find_artists(query.q)],
        albums=answer.page(search.find_albums(query.q), shapes.album_full, albums.with_contents),
        tracks=answer.page(search.find_tracks(query.q), shapes.track_full, tracks.complete),
        playlists=[playlist(row, site) for row in found],
    )
