"""Endpoints of albums, tracks with comments, likes and reposts, artists and genres."""

from musicsvc.server.handlers import albums, artists, changes, comments, genres, likes, search, tracks
from musicsvc.server.routes.route import EXTENSION, V1, Access, Cost, Docs, Route
from musicsvc.server.schemas import answers, catalog
from musicsvc.server.schemas.answers import one
from musicsvc.server.schemas.changes import Changes
from musicsvc.server.schemas.comments import Comment
from musicsvc.server.schemas.search import Found
from musicsvc.store.catalog import albums as album_store
from musicsvc.store.catalog import artists as artist_store
from musicsvc.store.catalog import tracks as track_store
from musicsvc.store.editing import edits
from musicsvc.store.engagement import comments as comment_store

PUBLIC = Access.PUBLIC
NESTED = Cost(nests_tracks=True)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/albums", albums.index, PUBLIC, cost=NESTED,
          answer=catalog.OfAlbums[catalog.Album], public_answer=catalog.OfAlbums[catalog.AlbumPublic]),
    Route("POST", f"{V1}/albums", albums.create, status=201, keyed=True, answer=one("album", catalog.Album)),
    Route("GET", f"{V1}/albums/{{id}}", albums.show, PUBLIC, find=album_store.get,
          answer=one("album", catalog.Album), public_answer=one("album", catalog.AlbumPublic)),
    Route("PATCH", f"{V1}/albums/{{id}}", albums.edit, find=edits.find_album, docs=EXTENSION,
          answer=one("album", catalog.Album)),
    Route("DELETE", f"{V1}/albums/{{id}}", albums.delete, find=edits.find_album, docs=EXTENSION,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks", tracks.index, docs=EXTENSION, answer=answers.Paged[catalog.Track]),
    Route("POST", f"{V1}/tracks", tracks.create, status=201, keyed=True, answer=one("track", catalog.Track)),
    Route("GET", f"{V1}/tracks/{{id}}", tracks.show, PUBLIC, find=track_store.get, docs=EXTENSION,
          answer=one("track", catalog.Track), public_answer=one("track", catalog.TrackPublic)),
    Route("PATCH", f"{V1}/tracks/{{id}}", tracks.edit, find=edits.find_track, docs=EXTENSION,
          answer=one("track", catalog.Track)),
    Route("DELETE", f"{V1}/tracks/{{id}}", tracks.delete, find=edits.find_track, docs=EXTENSION,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks/{{id}}/comments", comments.index, find=track_store.require,
          answer=answers.Paged[Comment]),
    Route("POST", f"{V1}/tracks/{{id}}/comments", comments.create, status=201, keyed=True, find=track_store.require,
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
    Route("GET", f"{V1}/artists", artists.index, PUBLIC,
          answer=catalog.OfArtists[catalog.Artist], public_answer=catalog.OfArtists[catalog.ArtistPublic]),
    Route("POST", f"{V1}/artists", artists.create, status=201, keyed=True, answer=one("artist", catalog.Artist)),
    Route("GET", f"{V1}/artists/{{id}}", artists.show, PUBLIC, find=artist_store.get, docs=EXTENSION,
          answer=one("artist", catalog.Artist), public_answer=one("artist", catalog.ArtistPublic)),
    Route("PATCH", f"{V1}/artists/{{id}}", artists.edit, find=edits.find_artist, docs=EXTENSION,
          answer=one("artist", catalog.Artist)),
    Route("DELETE", f"{V1}/artists/{{id}}", artists.delete, find=edits.find_artist, answer=answers.Success,
          docs=Docs(extension=True, raises=(409,), example={"id": 3})),
    Route("GET", f"{V1}/artists/{{id}}/albums", artists.list_albums, PUBLIC, find=artist_store.get,
          cost=NESTED, answer=answers.Paged[catalog.Album], public_answer=answers.Paged[catalog.AlbumPublic]),
    Route("GET", f"{V1}/artists/{{id}}/tracks", artists.list_tracks, PUBLIC, find=artist_store.get,
          answer=answers.Paged[catalog.Track], public_answer=answers.Paged[catalog.TrackPublic]),
    Route("GET", f"{V1}/search", search.index, docs=EXTENSION, answer=Found),
    Route("GET", f"{V1}/changes", changes.index, cost=Cost(settles=True), docs=EXTENSION, answer=Changes),
    Route("GET", f"{V1}/genres", genres.index, PUBLIC, docs=EXTENSION,
          answer=answers.Paged[catalog.Genre], public_answer=answers.Paged[catalog.Genre]),
)
# fmt: on
