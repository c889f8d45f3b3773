"""Endpoints of albums, tracks with comments, likes and reposts, artists and genres."""

from musicsvc.server.handlers import albums, artists, changes, comments, genres, likes, search, tracks
from musicsvc.server.routes.route import EXTENSION, V1, Access, Cost, Docs, Route
from musicsvc.server.schemas import answers, catalog
from musicsvc.server.schemas.answers import one
from musicsvc.server.schemas.catalog import (
    AlbumEdit,
    AlbumIn,
    AlbumPages,
    AlbumParts,
    ArtistEdit,
    ArtistIn,
    ArtistPages,
    TrackEdit,
    TrackIn,
)
from musicsvc.server.schemas.changes import Changes, ChangesQuery
from musicsvc.server.schemas.comments import Comment, CommentIn
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.search import CatalogQuery, Found
from musicsvc.server.schemas.track_lists import TrackPages
from musicsvc.store.catalog import albums as album_store
from musicsvc.store.catalog import artists as artist_store
from musicsvc.store.catalog import tracks as track_store
from musicsvc.store.editing import edits
from musicsvc.store.engagement import comments as comment_store

PUBLIC = Access.PUBLIC
NESTED = Cost(nests_tracks=True)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/albums", albums.index, PUBLIC, query=AlbumPages, cost=NESTED,
          answer=catalog.OfAlbums[catalog.Album], public_answer=catalog.OfAlbums[catalog.AlbumPublic]),
    Route("POST", f"{V1}/albums", albums.create, status=201, body=AlbumIn, answer=one("album", catalog.Album)),
    Route("GET", f"{V1}/albums/{{id}}", albums.show, PUBLIC, find=album_store.get, query=AlbumParts,
          answer=one("album", catalog.Album), public_answer=one("album", catalog.AlbumPublic)),
    Route("PATCH", f"{V1}/albums/{{id}}", albums.edit, find=edits.find_album, body=AlbumEdit, docs=EXTENSION,
          answer=one("album", catalog.Album)),
    Route("DELETE", f"{V1}/albums/{{id}}", albums.delete, find=edits.find_album, docs=EXTENSION,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks", tracks.index, query=TrackPages, docs=EXTENSION,
          answer=answers.Paged[catalog.Track]),
    Route("POST", f"{V1}/tracks", tracks.create, status=201, body=TrackIn, answer=one("track", catalog.Track)),
    Route("GET", f"{V1}/tracks/{{id}}", tracks.show, PUBLIC, find=track_store.get, docs=EXTENSION,
          answer=one("track", catalog.Track), public_answer=one("track", catalog.TrackPublic)),
    Route("PATCH", f"{V1}/tracks/{{id}}", tracks.edit, find=edits.find_track, body=TrackEdit, docs=EXTENSION,
          answer=one("track", catalog.Track)),
    Route("DELETE", f"{V1}/tracks/{{id}}", tracks.delete, find=edits.find_track, docs=EXTENSION,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks/{{id}}/comments", comments.index, find=track_store.require, query=Pages,
          answer=answers.Paged[Comment]),
    Route("POST", f"{V1}/tracks/{{id}}/comments", comments.create, status=201, find=track_store.require, body=CommentIn,
          docs=EXTENSION, answer=one("comment", Comment)),
    Route("DELETE", f"{V1}/comments/{{id}}", comments.delete, find=comment_store.get_deletable, docs=EXTENSION,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/like", likes.like, find=track_store.require, docs=EXTENSION,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/unlike", likes.unlike, find=track_store.require, docs=EXTENSION,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/repost", likes.repost, find=track_store.require, docs=EXTENSION,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/unrepost", likes.unrepost, find=track_store.require, docs=EXTENSION,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks/{{id}}/fingerprint/status", tracks.fingerprint_status, find=track_store.get,
          answer=catalog.Fingerprint),
    Route("GET", f"{V1}/artists", artists.index, PUBLIC, query=ArtistPages,
          answer=catalog.OfArtists[catalog.Artist], public_answer=catalog.OfArtists[catalog.ArtistPublic]),
    Route("POST", f"{V1}/artists", artists.create, status=201, body=ArtistIn,
          answer=one("artist", catalog.Artist)),
    Route("GET", f"{V1}/artists/{{id}}", artists.show, PUBLIC, find=artist_store.get, docs=EXTENSION,
          answer=one("artist", catalog.Artist), public_answer=one("artist", catalog.ArtistPublic)),
    Route("PATCH", f"{V1}/artists/{{id}}", artists.edit, find=edits.find_artist, body=ArtistEdit, docs=EXTENSION,
          answer=one("artist", catalog.Artist)),
    Route("DELETE", f"{V1}/artists/{{id}}", artists.delete, find=edits.find_artist, answer=answers.Success,
          docs=Docs(extension=True, raises=(409,), example={"id": 3})),
    Route("GET", f"{V1}/artists/{{id}}/albums", artists.list_albums, PUBLIC, find=artist_store.get, query=Pages,
          cost=NESTED, answer=answers.Paged[catalog.Album], public_answer=answers.Paged[catalog.AlbumPublic]),
    Route("GET", f"{V1}/artists/{{id}}/tracks", artists.list_tracks, PUBLIC, find=artist_store.get, query=Pages,
          answer=answers.Paged[catalog.Track], public_answer=answers.Paged[catalog.TrackPublic]),
    Route("GET", f"{V1}/search", search.index, query=CatalogQuery, docs=EXTENSION, answer=Found),
    Route("GET", f"{V1}/changes", changes.index, query=ChangesQuery, cost=Cost(settles=True), docs=EXTENSION,
          answer=Changes),
    Route("GET", f"{V1}/genres", genres.index, PUBLIC, query=Pages, docs=EXTENSION,
          answer=answers.Paged[catalog.Genre], public_answer=answers.Paged[catalog.Genre]),
)
# fmt: on
