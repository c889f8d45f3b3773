"""Page through the albums and build a playlist with a client that openapi-python-client generated as `generated`."""

import json
import sys

from generated import AuthenticatedClient
from generated.api.albums import albums_index
from generated.api.playlists import playlists_add_tracks, playlists_create, playlists_list_tracks
from generated.models import OfAlbumsAlbum, OnePlaylist, PagedTrack, PlaylistIn, TracksIn

root, token = sys.argv[1:]
client = AuthenticatedClient(base_url=root, token=token, raise_on_unexpected_status=True)

albums, last = [], 1
page = 0
while page < last:
    page += 1
    answer = albums_index.sync(client=client, page=page, per_page=2)
    assert isinstance(answer, OfAlbumsAlbum), answer
    last = answer.albums.last_page
    albums += answer.albums.data

made = playlists_create.sync(client=client, body=PlaylistIn(name="Generated"))
assert isinstance(made, OnePlaylist), made
tracks = [track.id for album in albums for track in album.tracks][:3]
added = playlists_add_tracks.sync(made.playlist.id, client=client, body=TracksIn(ids=tracks))
assert isinstance(added, OnePlaylist), added
held = playlists_list_tracks.sync(made.playlist.id, client=client, perPage=2)
assert isinstance(held, PagedTrack), held
print(
    json.dumps(
        {
            "albums": [album.id for album in albums],
            "playlist": added.playlist.name,
            "tracks_count": added.playlist.tracks_count,
            "first_page": [track.id for track in held.pagination.data],
            "total": held.pagination.total,
        }
    )
)
