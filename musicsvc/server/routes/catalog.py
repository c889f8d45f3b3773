"""Albums, tracks with their comments, likes and reposts, artists, genres."""

from musicsvc.server.handlers import albums, artists, comments, genres, reactions, tracks
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Access, Route
from musicsvc.server.schemas import answers
from musicsvc.server.schemas.catalog import AlbumIn, AlbumPages, AlbumParts, ArtistIn, TrackIn
from musicsvc.server.schemas.comments import CommentIn, OneComment
from musicsvc.server.schemas.fields import Pages
from musicsvc.store.catalog import albums as album_store
from musicsvc.store.catalog import artists as artist_store
from musicsvc.store.catalog import comments as comment_store
from musicsvc.store.catalog import tracks as track_store

PUBLIC = Access.PUBLIC

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("GET", f"{V1}/albums", albums.index, PUBLIC, query=AlbumPages, nests_tracks=True,
          answer=answers.OfAlbums[answers.Album], public_answer=answers.OfAlbums[answers.AlbumPublic]),
    Route("POST", f"{V1}/albums", albums.create, status=201, body=AlbumIn, answer=answers.OneAlbum[answers.Album]),
    Route("GET", f"{V1}/albums/{{id}}", albums.show, PUBLIC, find=album_store.get, query=AlbumParts,
          answer=answers.OneAlbum[answers.Album], public_answer=answers.OneAlbum[answers.AlbumPublic]),
    Route("POST", f"{V1}/tracks", tracks.create, status=201, body=TrackIn, answer=answers.OneTrack[answers.Track]),
    Route("GET", f"{V1}/tracks/{{id}}", tracks.show, PUBLIC, find=track_store.get, extension=True,
          answer=answers.OneTrack[answers.Track], public_answer=answers.OneTrack[answers.TrackPublic]),
    Route("GET", f"{V1}/tracks/{{id}}/comments", comments.index, find=track_store.known, query=Pages,
          answer=answers.Paged[answers.Comment]),
    Route("POST", f"{V1}/tracks/{{id}}/comments", comments.create, status=201, find=track_store.known, body=CommentIn,
          extension=True, answer=OneComment),
    Route("DELETE", f"{V1}/comments/{{id}}", comments.delete, find=comment_store.removable, extension=True,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/like", reactions.like, find=track_store.known, extension=True,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/unlike", reactions.unlike, find=track_store.known, extension=True,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/repost", reactions.repost, find=track_store.known, extension=True,
          answer=answers.Success),
    Route("POST", f"{V1}/tracks/{{id}}/unrepost", reactions.unrepost, find=track_store.known, extension=True,
          answer=answers.Success),
    Route("GET", f"{V1}/tracks/{{id}}/fingerprint/status", tracks.fingerprint_status, find=track_store.get,
          answer=answers.Fingerprint),
    Route("GET", f"{V1}/artists", artists.index, PUBLIC, query=AlbumPages,
          answer=answers.OfArtists[answers.Artist], public_answer=answers.OfArtists[answers.ArtistPublic]),
    Route("POST", f"{V1}/artists", artists.create, status=201, body=ArtistIn,
          answer=answers.OneArtist[answers.Artist]),
    Route("GET", f"{V1}/artists/{{id}}", artists.show, PUBLIC, find=artist_store.get, extension=True,
          answer=answers.OneArtist[answers.Artist], public_answer=answers.OneArtist[answers.ArtistPublic]),
    Route("GET", f"{V1}/artists/{{id}}/albums", artists.list_albums, PUBLIC, find=artist_store.get, query=Pages,
          nests_tracks=True, answer=answers.Paged[answers.Album], public_answer=answers.Paged[answers.AlbumPublic]),
    Route("GET", f"{V1}/artists/{{id}}/tracks", artists.list_tracks, PUBLIC, find=artist_store.get, query=Pages,
          answer=answers.Paged[answers.Track], public_answer=answers.Paged[answers.TrackPublic]),
    Route("GET", f"{V1}/genres", genres.index, PUBLIC, query=Pages, extension=True,
          answer=answers.Paged[answers.Genre], public_answer=answers.Paged[answers.Genre]),
)
# fmt: on
