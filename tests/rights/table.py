"""The expected rights for every endpoint, by the function that finds its subject.

A new endpoint needs a row here. One with a `find` goes by that function, which most often stands here already; one
without goes by its method and path. What sends a body needs one in BODIES.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from musicsvc.server.pages import html
from musicsvc.server.routes.route import INSIGHTS, V1, Access, Family, Route
from musicsvc.store.accounts import tokens, users
from musicsvc.store.catalog import albums, artists, tracks
from musicsvc.store.editing import edits
from musicsvc.store.engagement import comments
from musicsvc.store.insights import figures
from musicsvc.store.listens import pending
from musicsvc.store.messaging import messages, notifications
from musicsvc.store.playlists import collections, invites, playlists
from tests.rights import world as make
from tests.rights.world import OTHERS, OWNER, READER, REFUSED, WHO, World

SERVED = 0  # the status that stands on the endpoint's row


@dataclass(frozen=True)
class Right:
    """The expected status for each kind of caller with access.

    `make` gives the subject, in a unit. `body` is what is sent, where that is not what BODIES says; `query` stands
    after the path; the subject is put in place of `{}`.
    """

    make: Callable[[World, str], Any] = make.nothing
    body: Callable[[World, str, Any], Any] | None = None
    owner: int = SERVED
    stranger: int = SERVED
    collaborator: int = SERVED
    invited: int = SERVED
    former: int = SERVED
    query: str = ""


def owner_only(
    maker: Callable[[World, str], Any], refusal: int, body: Callable[[World, str, Any], Any] | None = None
) -> Right:
    """The owner succeeds; all others get the same status."""
    return Right(maker, body, stranger=refusal, collaborator=refusal, invited=refusal, former=refusal)


def _on_album(world: World, who: str, album: Any) -> dict[str, Any]:
    """A track of the caller's artist to add to the album, which only its manager may do."""
    return {"name": "Fireflies", "duration": 1, "artists": [world.own_artist(who)], "album_id": album}


def _move(world: World, who: str, playlist: int) -> dict[str, int]:
    """Add a track to the playlist. Return its position before and after a move."""
    world.do(lambda: playlists.append(playlist, [make.track(world, who)], actor=None, now=world.now))
    return {"from": 1, "to": 1}


def _two_tracks(world: World, who: str) -> str:
    return ",".join(str(make.track(world, who)) for _ in range(2))


PRIVATE, PUBLIC = make.playlist(public=False), make.playlist(public=True)
ANYBODY = {"": Right()}
OWNED = {
    "private": Right(PRIVATE, stranger=404, collaborator=403, invited=404, former=404),
    "public": owner_only(PUBLIC, 403),
}
ADDRESSED = {
    "private": Right(PRIVATE, owner=404, stranger=404, collaborator=409, former=404),
    "public": Right(PUBLIC, owner=404, stranger=404, collaborator=409, former=404),
}
RIGHTS: Mapping[Callable[..., Any] | str, Mapping[str, Right]] = {
    albums.get: {"": Right(make.album)},
    artists.get: {"": Right(make.artist)},
    tracks.get: {"": Right(make.track)},
    tracks.require: {"": Right(make.track)},
    edits.find_track: {"": owner_only(make.track, 403)},
    edits.find_album: {"": owner_only(make.album, 403)},
    edits.find_artist: {"": owner_only(make.artist, 403)},
    comments.get_deletable: {
        "author": owner_only(make.comment, 403),
        "manager": owner_only(make.comment_on_track, 403),
    },
    users.get: {"": Right(make.somebody)},
    collections.get: {"": owner_only(make.collection, 404)},
    messages.get: {"": owner_only(make.conversation, 404)},
    notifications.require_own: {"by id": owner_only(make.account, 403), "as me": Right(lambda _world, _who: "me")},
    playlists.get_readable: {
        "private": Right(PRIVATE, stranger=404, invited=404, former=404),
        "public": Right(PUBLIC),
    },
    playlists.get_editable: {
        "private": Right(PRIVATE, stranger=404, invited=404, former=404),
        "public": Right(PUBLIC, stranger=403, invited=403, former=403),
    },
    playlists.get_owned: OWNED,
    figures.track_of: {"": owner_only(make.track, 403)},
    figures.album_of: {"": owner_only(make.album, 403)},
    figures.artist_of: {"": owner_only(make.artist, 403)},
    invites.get_own: ADDRESSED,
    invites.get_removable: {
        "another": Right(make.collaboration(public=False), stranger=404, collaborator=403, invited=404, former=404),
        "another, public": owner_only(make.collaboration(public=True), 403),
        "oneself": Right(make.collaboration(public=False, user="me"), owner=404, stranger=404, invited=404, former=404),
    },
    tokens.get_own: {"": owner_only(make.token, 404)},
    pending.find_own: {"": owner_only(make.pending_listen, 404)},
    f"GET {V1}/users/me/pending-listens": ANYBODY,
    f"DELETE {V1}/users/me/pending-listens": ANYBODY,
    f"POST {V1}/auth/register": ANYBODY,
    f"POST {V1}/auth/login": ANYBODY,
    f"GET {V1}/access-tokens": ANYBODY,
    f"POST {V1}/access-tokens": ANYBODY,
    f"POST {V1}/access-requests": {"": Right(owner=409, stranger=409, collaborator=409, invited=409, former=409)},
    f"GET {V1}/access-requests/me": {"": Right(make.access_request)},
    f"GET {V1}/users/me": ANYBODY,
    f"GET {V1}/users/me/followed-users": ANYBODY,
    f"GET {V1}/users/me/followers": ANYBODY,
    f"GET {V1}/users/me/likes": ANYBODY,
    f"GET {V1}/users/me/reposts": ANYBODY,
    f"GET {V1}/users/me/artists": ANYBODY,
    f"GET {V1}/users/search": {"": Right(query="?query=owner")},
    f"GET {V1}/albums": ANYBODY,
    f"POST {V1}/albums": {"": owner_only(make.artist, 403)},
    f"GET {V1}/tracks": ANYBODY,
    f"POST {V1}/tracks": {"": owner_only(make.artist, 403), "on an album": owner_only(make.album, 403, _on_album)},
    f"GET {V1}/artists": ANYBODY,
    f"POST {V1}/artists": ANYBODY,
    f"GET {V1}/changes": ANYBODY,
    f"GET {V1}/genres": ANYBODY,
    f"GET {V1}/search": {"": Right(query="?q=fireflies")},
    f"GET {V1}/playlists": ANYBODY,
    f"GET {V1}/playlists/invitations": ANYBODY,
    f"POST {V1}/playlists": ANYBODY,
    f"PUT {V1}/playlists": {**OWNED, "by name": Right()},
    f"POST {V1}/plays": ANYBODY,
    f"GET {V1}/collections": ANYBODY,
    f"POST {V1}/collections": ANYBODY,
    f"POST {V1}/messaging/messages": {"": owner_only(make.conversation, 404)},
    f"GET {V1}/messaging/conversations": ANYBODY,
    f"POST {V1}/messaging/conversations": ANYBODY,
    f"POST {V1}/fcm-tokens": ANYBODY,
    f"DELETE {V1}/fcm-tokens": ANYBODY,
    f"POST {V1}/cover-art/preview": ANYBODY,
    f"GET {V1}/cover-art/templates": ANYBODY,
    "GET /cover-art/previews/{name}": {"": Right(make.preview)},
    "GET /cover-art/templates/{name}": {"": Right(lambda _world, _who: "1.png")},
    "GET /avatars/{id}": {"": Right(make.somebody)},
    "GET /avatars/artist/{id}": {"": Right(make.artist)},
    "GET /avatars/album/{id}": {"": Right(make.album)},
    "GET /avatars/track/{id}": {"": Right(make.track)},
    "GET /thumbnails/artist/{id}": {"": Right(make.artist)},
    "GET /thumbnails/album/{id}": {"": Right(make.album)},
    "GET /thumbnails/track/{id}": {"": Right(make.track)},
    f"GET {INSIGHTS}/missing-tracks": ANYBODY,
    f"GET {INSIGHTS}/find": {"": Right(query="?q=fireflies")},
    f"GET {INSIGHTS}/compare": {"": replace(owner_only(_two_tracks, 403), query="?kind=tracks&ids={}")},
    f"GET {INSIGHTS}/movers": {"": Right(query="?kind=albums")},
    f"GET {INSIGHTS}/export/formats": ANYBODY,
    f"POST {INSIGHTS}/export/csv": ANYBODY,
    f"POST {INSIGHTS}/export/json": ANYBODY,
    f"POST {INSIGHTS}/export/xlsx": ANYBODY,
    f"POST {INSIGHTS}/export/report": ANYBODY,
    f"POST {INSIGHTS}/export/pdf": ANYBODY,
    f"GET {V1}/openapi.json": ANYBODY,
    "GET /docs": ANYBODY,
    "GET /llms.txt": ANYBODY,
    "GET /docs/{name}": {"": Right(lambda _world, _who: "page.css")},
    "GET /healthz": ANYBODY,
    "GET /readyz": ANYBODY,
    "GET /metrics": ANYBODY,
    "GET /static/{name}": {"": Right(lambda _world, _who: next(iter(html.static_files())))},
}


BODIES: Mapping[str, Callable[[World, str, Any], dict[str, Any]]] = {
    f"POST {V1}/auth/register": lambda world, who, __: {
        "email": f"{who.replace(' ', '-')}@new.{world.domain}",
        "password": "three romances",
    },
    f"POST {V1}/auth/login": lambda world, *_: {
        "email": world.email(OWNER),
        "password": make.PASSWORD,
        "token_name": "my phone",
    },
    f"POST {V1}/access-tokens": lambda *_: {"name": "laptop", "password": make.PASSWORD},
    f"POST {V1}/access-requests": lambda *_: {"use_case": "A page", "organization": "Own", "volume": "9 a day"},
    f"POST {V1}/albums": lambda _, __, artist: {"name": "Sketches", "artist_id": artist},
    f"POST {V1}/tracks": lambda _, __, artist: {"name": "Fireflies", "duration": 1, "artists": [artist]},
    f"POST {V1}/artists": lambda *_: {"name": "Amy Beach"},
    f"PATCH {V1}/albums/{{id}}": lambda *_: {"label": "Breitkopf"},
    f"PATCH {V1}/tracks/{{id}}": lambda *_: {"bpm": 96},
    f"PATCH {V1}/artists/{{id}}": lambda *_: {"name": "Amy Beach"},
    f"POST {V1}/playlists": lambda *_: {"name": "Rags"},
    f"PUT {V1}/playlists": lambda _, __, playlist: {"name": "Rags", "id": playlist},
    f"PUT {V1}/playlists/{{id}}": lambda *_: {"name": "Rags"},
    f"POST {V1}/playlists/{{id}}/tracks/add": lambda world, who, _: {"ids": [world.do(lambda: make.track(world, who))]},
    f"POST {V1}/playlists/{{id}}/tracks/remove": lambda *_: {"ids": [1]},
    f"PATCH {V1}/playlists/{{id}}": lambda *_: {"public": True},
    f"POST {V1}/playlists/{{id}}/tracks/move": _move,
    f"POST {V1}/playlists/{{id}}/invite": lambda world, *_: {"user_id": world.ids["no token"]},
    f"POST {V1}/tracks/{{id}}/comments": lambda *_: {"content": "That bridge!"},
    f"POST {V1}/plays": lambda world, *_: {"plays": [{"track_id": 1, "played_at": world.now // 1_000_000}]},
    f"POST {V1}/collections": lambda *_: {"name": "Piano"},
    f"POST {V1}/users/me/pending-listens/{{id}}": lambda world, who, _: {
        "track_id": world.do(lambda: make.track(world, who))
    },
    f"POST {V1}/messaging/messages": lambda _, __, talk: {"conversation_id": talk, "message_text": "Hello"},
    f"POST {V1}/messaging/conversations": lambda world, *_: {"user_ids": [world.ids["no token"]]},
    f"POST {V1}/cover-art/preview": lambda *_: {"template_id": 1, "title": "Rags", "artist": "Scott Joplin"},
    f"POST {V1}/fcm-tokens": lambda *_: {"token": "abc"},
    f"DELETE {V1}/fcm-tokens": lambda *_: {"token": "abc"},
    f"POST {INSIGHTS}/export/csv": lambda *_: {"type": "tracks"},
    f"POST {INSIGHTS}/export/json": lambda *_: {"type": "plays", "period": "1-year"},
    f"POST {INSIGHTS}/export/xlsx": lambda *_: {"type": "albums"},
    f"POST {INSIGHTS}/export/report": lambda *_: {"include_charts": True},
    f"POST {INSIGHTS}/export/pdf": lambda *_: {"period": "7-days"},
    f"PUT {V1}/notifications/{{user}}/subscriptions": lambda *_: {"selections": []},
}
GATES: Mapping[Access, Mapping[str, int]] = {
    Access.OPEN: dict.fromkeys(REFUSED, SERVED),
    Access.PUBLIC: dict(zip(REFUSED, (SERVED, 401, 401, 401, 403, 403), strict=True)),
    Access.TOKEN: dict(zip(REFUSED, (401, 401, 401, 401, 403, 403), strict=True)),
    Access.ACCOUNT: dict(zip(REFUSED, (401, 401, 401, 401, SERVED, 403), strict=True)),
}


def endpoint(route: Route) -> str:
    """The endpoint's method and path."""
    return f"{route.method} {route.path}"


def path_of(route: Route, subject: object) -> str:
    """The path of a subject, which is its id or text, or has all parameters of the path."""
    return route.path.format_map(subject if isinstance(subject, dict) else dict.fromkeys(route.parameters, subject))


def key(route: Route) -> Callable[..., Any] | str:
    """The key of the endpoint in RIGHTS. Pages are not there but in tests/rights/pages.py, by method and path."""
    return endpoint(route) if route.family is Family.PAGE else route.find or endpoint(route)


def expected(route: Route, right: Right) -> dict[str, int]:
    """The status for each kind of caller."""
    others = (right.stranger, right.collaborator, right.invited, right.former)
    reads = route.method == "GET" or "/export/" in route.path or route.access is Access.OPEN
    told = {
        **GATES[route.access],
        READER: right.owner if reads else 403,
        OWNER: right.owner,
        **dict(zip(OTHERS, others, strict=True)),
    }
    return {who: told[who] or route.status for who in WHO}
