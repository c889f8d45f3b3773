"""List, read, create, change and delete playlists and their tracks."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.playlists import MoveIn, PlaylistEdit, PlaylistIn, PlaylistPut, TracksIn, TracksOut
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok, paged
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import tracks
from musicsvc.store.playlists import playlists
from musicsvc.store.playlists.playlists import PlaylistRow


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's playlists and those shared with the caller, newest first."""
    return paged(playlists.list_editable(query.to_page(), actor=caller), catalog.playlist, site)


def show(subject: PlaylistRow, site: Site) -> JSON:
    """Read a playlist."""
    return ok(playlist=catalog.playlist(subject, site))


def create(body: PlaylistIn, caller: Identity, site: Site, now: int) -> JSON:
    """Create a playlist of the caller."""
    return ok(playlist=catalog.playlist(playlists.create(body.model_dump(), now=now, actor=caller), site))


def put(body: PlaylistPut, caller: Identity, site: Site, now: int) -> JSON:
    """Replace a playlist, found by `id` or else by name; create it if the caller has none with this name."""
    values = body.model_dump(exclude={"id"})
    if body.id is not None:
        found: PlaylistRow | None = playlists.get_owned(body.id, actor=caller)
    else:
        found = playlists.find_by_name(body.name, actor=caller)
    playlist = playlists.replace(found.id, values) if found else playlists.create(values, now=now, actor=caller)
    return ok(playlist=catalog.playlist(playlist, site))


def replace(subject: PlaylistRow, body: PlaylistIn, site: Site) -> JSON:
    """Replace a playlist; absent fields get their defaults, the tracks stay."""
    return ok(playlist=catalog.playlist(playlists.replace(subject.id, body.model_dump()), site))


def edit(subject: PlaylistRow, body: PlaylistEdit, site: Site) -> JSON:
    """Change a playlist; only the fields that are sent change."""
    sent = body.model_dump(exclude_unset=True)
    values = {name: value for name, value in sent.items() if (name, value) != ("name", None)}
    return ok(playlist=catalog.playlist(playlists.replace(subject.id, values), site))


def delete(subject: PlaylistRow) -> JSON:
    """Delete a playlist."""
    playlists.delete(subject.id)
    return ok()


def list_tracks(subject: PlaylistRow, query: Pages, answer: AnswerBuilder) -> JSON:
    """List the tracks of a playlist in order."""
    found = playlists.list_tracks(subject.id, query.to_page())
    return answer.paged(found, catalog.track_full, tracks.complete, kind="entries of playlists")


def add_tracks(subject: PlaylistRow, body: TracksIn, caller: Identity, site: Site, now: int) -> JSON:
    """Append tracks to a playlist, including tracks that it already has."""
    playlists.append(subject.id, body.ids, actor=caller.user_id, now=now)
    return ok(playlist=catalog.playlist(playlists.get(subject.id), site))


def remove_tracks(subject: PlaylistRow, body: TracksOut, site: Site) -> JSON:
    """Remove all occurrences of tracks from a playlist."""
    playlists.remove(subject.id, body.ids)
    return ok(playlist=catalog.playlist(playlists.get(subject.id), site))


def move_track(subject: PlaylistRow, body: MoveIn, site: Site) -> JSON:
    """Move a track of a playlist to another position."""
    playlists.move(subject.id, body.first, body.to)
    return ok(playlist=catalog.playlist(subject, site))
