"""Endpoints of playlists, their tracks and collaborators, and of collections."""

from functools import partial

from musicsvc.server.handlers import collections, invites, playlists
from musicsvc.server.routes.route import EXTENSION, V1, Added, Docs, Route
from musicsvc.server.schemas.answers import Paged, Success, UserSummary, one
from musicsvc.server.schemas.catalog import Track
from musicsvc.server.schemas.playlists import Collection, CollectionListed, Invitation, Invited, Playlist
from musicsvc.store.playlists.collections import get as get_collection
from musicsvc.store.playlists.invites import get_own, get_removable
from musicsvc.store.playlists.playlists import get_editable, get_owned, get_readable

ALL = f"{V1}/playlists"
ONE = f"{ALL}/{{id}}"
Private = partial(Route, private=True)
ONE_PLAYLIST = one("playlist", Playlist)
COLLECTIONS = f"{V1}/collections"


# fmt: off
ROUTES: tuple[Route, ...] = (
    Added("GET", ALL, playlists.index, answer=Paged[Playlist]),
    Route("POST", ALL, playlists.create, keyed=True, answer=ONE_PLAYLIST),
    Private("PUT", ALL, playlists.put, answer=ONE_PLAYLIST, docs=Docs(raises=(404,))),
    Private("GET", ONE, playlists.show, find=get_readable, docs=EXTENSION, answer=ONE_PLAYLIST),
    Private("PUT", ONE, playlists.replace, find=get_owned, docs=EXTENSION, answer=ONE_PLAYLIST),
    Private("PATCH", ONE, playlists.edit, find=get_owned, docs=EXTENSION, answer=ONE_PLAYLIST),
    Private("DELETE", ONE, playlists.delete, find=get_owned, answer=Success),
    Private("GET", f"{ONE}/tracks", playlists.list_tracks, find=get_readable, docs=EXTENSION, answer=Paged[Track]),
    Private("POST", f"{ONE}/tracks/add", playlists.add_tracks, find=get_editable, docs=EXTENSION, answer=ONE_PLAYLIST),
    Private("POST", f"{ONE}/tracks/remove", playlists.remove_tracks, find=get_editable, answer=ONE_PLAYLIST),
    Private("POST", f"{ONE}/tracks/move", playlists.move_track, find=get_editable, docs=EXTENSION, answer=ONE_PLAYLIST),
    Added("GET", f"{ALL}/invitations", invites.index, answer=Paged[Invitation]),
    Private("GET", f"{ONE}/collaborators", invites.list_collaborators, find=get_readable, docs=EXTENSION,
            answer=Paged[UserSummary]),
    Private("DELETE", f"{ONE}/collaborators/{{user}}", invites.remove_collaborator, find=get_removable, answer=Success,
            docs=Docs(extension=True, example={"id": 3, "user": "3"})),
    Private("POST", f"{ONE}/invite", invites.create, find=get_owned, answer=Invited, docs=Docs(raises=(409,))),
    Private("POST", f"{ONE}/accept-invite", invites.accept, find=get_own, answer=ONE_PLAYLIST,
            docs=Docs(extension=True, raises=(409,), example={"id": 2})),
    Private("POST", f"{ONE}/decline-invite", invites.decline, find=get_own, answer=ONE_PLAYLIST,
            docs=Docs(extension=True, raises=(409,), example={"id": 2})),
    Route("POST", COLLECTIONS, collections.create, status=201, keyed=True, answer=one("collection", Collection)),
    Added("GET", COLLECTIONS, collections.index, answer=Paged[CollectionListed]),
    Added("GET", f"{COLLECTIONS}/{{id}}", collections.show, find=get_collection, private=True,
          answer=one("collection", Collection)),
)
# fmt: on
