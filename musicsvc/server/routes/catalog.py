"""Endpoints of albums, tracks with comments, likes and reposts, artists and genres."""

from musicsvc.server.handlers import albums, artists, changes, comments, genres, likes, search, tracks
from musicsvc.server.routes.route import V1, Access, Added, Cost, Docs, Route
from musicsvc.server.schemas import catalog
from musicsvc.server.schemas.answers import Paged, Success, one
from musicsvc.server.schemas.catalog import Album, Artist, Track
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
ALBUM, TRACK, ARTIST = f"{V1}/albums/{{id}}", f"{V1}/tracks/{{id}}", f"{V1}/artists/{{id}}"
ONE_ALBUM, ONE_TRACK, ONE_ARTIST = one("album", Album), one("track", Track), one("artist", Artist)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/albums", albums.index, PUBLIC, cost=NESTED,
          answer=catalog.OfAlbums[Album], public_answer=catalog.OfAlbums[catalog.AlbumPublic]),
    Route("POST", f"{V1}/albums", albums.create, status=201, keyed=True, answer=ONE_ALBUM),
    Route("GET", ALBUM, albums.show, PUBLIC, find=album_store.get,
          answer=ONE_ALBUM, public_answer=one("album", catalog.AlbumPublic)),
    Added("PATCH", ALBUM, albums.edit, find=edits.find_album, answer=ONE_ALBUM),
    Added("DELETE", ALBUM, albums.delete, find=edits.find_album, answer=Success),
    Added("GET", f"{V1}/tracks", tracks.index, answer=Paged[Track]),
    Route("POST", f"{V1}/tracks", tracks.create, status=201, keyed=True, answer=ONE_TRACK),
    Added("GET", TRACK, tracks.show, PUBLIC, find=track_store.get,
          answer=ONE_TRACK, public_answer=one("track", catalog.TrackPublic)),
    Added("PATCH", TRACK, tracks.edit, find=edits.find_track, answer=ONE_TRACK),
    Added("DELETE", TRACK, tracks.delete, find=edits.find_track, answer=Success),
    Route("GET", f"{TRACK}/comments", comments.index, find=track_store.require, answer=Paged[Comment]),
    Added("POST", f"{TRACK}/comments", comments.create, status=201, keyed=True, find=track_store.require,
          answer=one("comment", Comment)),
    Added("DELETE", f"{V1}/comments/{{id}}", comments.delete, find=comment_store.get_deletable, answer=Success),
    Added("POST", f"{TRACK}/like", likes.like, find=track_store.require, answer=Success),
    Added("POST", f"{TRACK}/unlike", likes.unlike, find=track_store.require, answer=Success),
    Added("POST", f"{TRACK}/repost", likes.repost, find=track_store.require, answer=Success),
    Added("POST", f"{TRACK}/unrepost", likes.unrepost, find=track_store.require, answer=Success),
    Route("GET", f"{TRACK}/fingerprint/status", tracks.fingerprint_status, find=track_store.get,
          answer=catalog.Fingerprint),
    Route("GET", f"{V1}/artists", artists.index, PUBLIC,
          answer=catalog.OfArtists[Artist], public_answer=catalog.OfArtists[catalog.ArtistPublic]),
    Route("POST", f"{V1}/artists", artists.create, status=201, keyed=True, answer=ONE_ARTIST),
    Added("GET", ARTIST, artists.show, PUBLIC, find=artist_store.get,
          answer=ONE_ARTIST, public_answer=one("artist", catalog.ArtistPublic)),
    Added("PATCH", ARTIST, artists.edit, find=edits.find_artist, answer=ONE_ARTIST),
    Route("DELETE", ARTIST, artists.delete, find=edits.find_artist, answer=Success,
          docs=Docs(extension=True, raises=(409,), example={"id": 3})),
    Route("GET", f"{ARTIST}/albums", artists.list_albums, PUBLIC, find=artist_store.get,
          cost=NESTED, answer=Paged[Album], public_answer=Paged[catalog.AlbumPublic]),
    Route("GET", f"{ARTIST}/tracks", artists.list_tracks, PUBLIC, find=artist_store.get,
          answer=Paged[Track], public_answer=Paged[catalog.TrackPublic]),
    Added("GET", f"{V1}/search", search.index, answer=Found),
    Added("GET", f"{V1}/changes", changes.index, cost=Cost(settles=True), answer=Changes),
    Added("GET", f"{V1}/genres", genres.index, PUBLIC,
          answer=Paged[catalog.Genre], public_answer=Paged[catalog.Genre]),
)
# fmt: on
