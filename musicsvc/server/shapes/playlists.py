"""Build the JSON of playlists, without their tracks."""

from musicsvc.clock import isoformat
from musicsvc.server.shapes import users
from musicsvc.server.shapes.envelope import JSON, Site
from musicsvc.store.playlists.playlists import PlaylistRow


def playlist(row: PlaylistRow, site: Site) -> JSON:
    return {
        "id": row.id,
        "name": row.name,
        "public": bool(row.public),
        "collaborative": bool(row.collaborative),
        "image": row.image,
        "description": row.description,
        "model_type": "playlist",
        "created_at": isoformat(row.created_at),
        "tracks_count": row.tracks_count,
        "owner": users.summary(row.owner_id, row.owner_name, row.owner_avatar, site),
    }
