"""The expected rows of every paged endpoint in order, computed only from the test data.

A new paged endpoint needs an entry in LISTS, with every filter that it has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from musicsvc.clock import DAY, isoformat
from musicsvc.server.routes.route import V1
from tests.paging.world import Row, World

ANYBODY = ("ben", None)  # who sees the catalog; None has no token
OWNERS = ("ann", "ben")


@dataclass(frozen=True)
class View:
    """A list for one caller: all its rows, in order."""

    path: str
    caller: str | None
    rows: Sequence[Row]

    def at(self, query: str) -> str:
        """Return the path with more of a query string."""
        return f"{self.path}{'&' if '?' in self.path else '?'}{query}"


def _pick(row: Row, *names: str) -> Row:
    return {name: row[name] for name in names}


def _instant(row: Row) -> Row:
    return {"created_at": isoformat(row["created_at"])}


def artist(row: Row, caller: str | None) -> Row:
    """An artist of a list."""
    if caller is None:
        return _pick(row, "id", "name") | {"model_type": "artist"}
    own = _pick(row, "id", "name", "image_small", "verified") | {"model_type": "artist"}
    return own | _instant(row) | _pick(row, "albums_count", "tracks_count")


def _by(row: Row) -> list[Row]:
    return [_pick(artist, "id", "name", "image_small", "verified") for artist in row["by"]]


def _image(row: Row) -> str | None:
    """Return the image of a track: its own or that of its album."""
    image: str | None = row["image"] or (row["album"] and row["album"]["image"])
    return image


def _track_within(row: Row) -> Row:
    own = _pick(row, "id", "name", "release_date") | {"image": _image(row)}
    return own | _pick(row, "duration", "description") | {"artists": _by(row)}


def _duration_text(row: Row) -> dict[str, str]:
    seconds = row["duration"] // 1000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    text = f"{hours}:{minutes:02}" if hours else str(minutes)
    return {"duration_text": f"{text}:{seconds % 60:02}"}


def track(row: Row, caller: str | None) -> Row:
    """A track of a list."""
    if caller is None:
        own = _pick(row, "id", "name") | {"image": _image(row)}
        return own | _instant(row) | {"model_type": "track"} | _duration_text(row)
    terms = ("price", "currency", "licensing_type", "exclusive_status", "exclusive_price")
    return (
        _track_within(row)
        | {"model_type": "track"}
        | _instant(row)
        | _duration_text(row)
        | _pick(row, "bpm", "key", "scale", "plays")
        | {"likes_count": row["likes"], "reposts_count": row["reposts"]}
        | _pick(row, *terms)
        | {"genres": [genre(each, caller) for each in row["genres"]]}
        | {"tags": [{"id": tag_id, "name": name} for tag_id, name in row["tags"]]}
        | {"album_id": row["album"] and row["album"]["id"]}
        | _pick(row, "isrc", "track_number", "disc_number", "explicit")
    )


def album(world: World, row: Row, caller: str | None) -> Row:
    """An album of a list, its tracks in the order in which they were created."""
    if caller is None:
        return _pick(row, "id", "name") | {"model_type": "album"} | _pick(row, "image", "release_date")
    tracks = [track for track in world.tracks if track["album"] is row]
    own = _pick(row, "id", "name", "image", "release_date", "description")
    contents = {"tracks": [_track_within(track) for track in tracks], "artists": _by(row)}
    plays = sum(track["plays"] for track in tracks)
    return own | contents | {"model_type": "album"} | _instant(row) | {"plays": plays} | _pick(row, "upc", "label")


def genre(row: Row, _caller: str | None) -> Row:
    """A genre, in both tiers."""
    return _pick(row, "id", "name", "display_name") | {"model_type": "genre"}


def comment(world: World, row: Row) -> Row:
    """A comment."""
    own = _pick(row, "id", "content", "position", "depth", "deleted")
    return own | {"user": world.summary(row["by"])}


def playlist(world: World, row: Row) -> Row:
    """A playlist."""
    own = _pick(row, "id", "name", "public", "collaborative", "image", "description") | {"model_type": "playlist"}
    return own | _instant(row) | {"tracks_count": len(row["tracks"]), "owner": world.summary(row["owner"])}


def invitation(world: World, row: Row) -> Row:
    """An open invitation."""
    times = {"created_at": isoformat(row["created_at"]), "expires_at": isoformat(row["created_at"] + 7 * DAY)}
    return {"playlist": playlist(world, row["playlist"]), "inviter": world.summary(row["playlist"]["owner"])} | times


def collection(world: World, row: Row) -> Row:
    """A collection of a list."""
    own = _pick(row, "id", "name", "description") | {"tracks_count": len(row["tracks"])}
    return own | {"user": world.summary(row["owner"])} | _instant(row)


def message(world: World, conversation: Row, row: Row) -> Row:
    """A message."""
    own = {"id": row["id"], "conversation_id": conversation["id"]} | _pick(row, "message_text")
    return own | {"user": world.summary(row["by"])} | _instant(row)


def conversation(world: World, row: Row) -> Row:
    """A conversation with its newest message."""
    last = message(world, row, row["messages"][-1]) if row["messages"] else None
    people = [world.summary(user_id) for user_id in row["users"]]
    return {"id": row["id"], "users": people, "last_message": last} | _instant(row)


def _newest(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row["id"])


def _albums(world: World) -> Iterable[View]:
    for caller in ANYBODY:
        yield View("albums", caller, [album(world, row, caller) for row in _newest(world.albums)])


def _artists(world: World) -> Iterable[View]:
    for caller in ANYBODY:
        yield View("artists", caller, [artist(row, caller) for row in _newest(world.artists)])

    for query, holds in {
        "?q=artist%201": lambda row: row["name"].startswith("Artist 1"),
        "?q=%25": lambda _row: False,
    }.items():
        for caller in ANYBODY:
            yield View(f"artists{query}", caller, [artist(row, caller) for row in _newest(world.artists) if holds(row)])


def _managed(world: World) -> Iterable[View]:
    for name in OWNERS:
        rows = [row for row in _newest(world.artists) if row["manager"] == world.callers[name].user_id]
        yield View("users/me/artists", name, [artist(row, name) for row in rows])


def _albums_of_artist(world: World) -> Iterable[View]:
    """The newest release first, albums without a date last."""
    for one in (world.star, world.artists[2], world.artists[0]):
        rows = _newest(row for row in world.albums if one in row["by"])
        rows.sort(key=lambda row: row["release_date"] or "", reverse=True)
        for caller in ANYBODY:
            yield View(f"artists/{one['id']}/albums", caller, [album(world, row, caller) for row in rows])


def _tracks_of_artist(world: World) -> Iterable[View]:
    """The most played first."""
    for one in (world.star, world.artists[3], world.artists[0]):
        rows = _newest(row for row in world.tracks if one in row["by"])
        rows.sort(key=lambda row: row["plays"], reverse=True)
        for caller in ANYBODY:
            yield View(f"artists/{one['id']}/tracks", caller, [track(row, caller) for row in rows])


def _tracks(world: World) -> Iterable[View]:
    """All tracks, and those that match one or several filters, the newest first."""
    star, third = world.star["id"], world.artists[3]["id"]
    code = world.tracks[1]["isrc"]
    filters: Mapping[str, Callable[[Row], bool]] = {
        "": lambda _row: True,
        f"?artist_id={star}": lambda row: world.star in row["by"],
        f"?artist_id={third}&genre=zouk-0": lambda row: world.artists[3] in row["by"] and "zouk-0" in _slugs(row),
        f"?artist_id={star}&genre=10%20Step%200": lambda row: world.star in row["by"] and "10-step-0" in _slugs(row),
        "?genre=Ambient+0": lambda row: "ambient-0" in _slugs(row),
        "?genre=polka": lambda _row: False,
        f"?isrc={code[:2].lower()}-{code[2:5]}-{code[5:7]}-{code[7:]}": lambda row: row["isrc"] == code,
        f"?isrc={code}&artist_id={third}": lambda row: row["isrc"] == code and world.artists[3] in row["by"],
        f"?isrc={code}&genre=ambient-0": lambda row: row["isrc"] == code and "ambient-0" in _slugs(row),
        f"?isrc={code}&external_id=none": lambda _row: False,
        "?external_id=ext%201": lambda row: row["external_id"] == "ext 1",
        "?q=%20TRACK%20%201": lambda row: row["name"].startswith("Track 1"),
        "?q=2": lambda row: row["name"].startswith("Track 2"),
        "?q=rack&genre=ambient-0": lambda row: "ambient-0" in _slugs(row),
        f"?q=t&artist_id={third}": lambda row: world.artists[3] in row["by"],
        f"?q=%C3%A1ck%203&isrc={code}": lambda row: row["isrc"] == code and row["name"].startswith("Track 3"),
        "?q=%25": lambda _row: False,
        "?q=%CC%81": lambda _row: False,
    }
    for query, holds in filters.items():
        rows = [track(row, "ben") for row in _newest(world.tracks) if holds(row)]
        yield View(f"tracks{query}", "ben", rows)


def _slugs(row: Row) -> list[str]:
    return [each["name"] for each in row["genres"]]


def _genres(world: World) -> Iterable[View]:
    rows = sorted(world.genres, key=lambda row: row["name"].encode())
    for caller in ANYBODY:
        yield View("genres", caller, [genre(row, caller) for row in rows])


def _comments(world: World) -> Iterable[View]:
    rows = [comment(world, row) for row in _thread(world.comments, None)]
    for caller in OWNERS:
        yield View(f"tracks/{world.tracks[0]['id']}/comments", caller, rows)
        yield View(f"tracks/{world.tracks[2]['id']}/comments", caller, [])


def _thread(rows: Sequence[Row], parent: Row | None) -> list[Row]:
    """Root comments by position, then time; replies under their parent, by time."""
    here = [row for row in rows if row["parent"] is parent]
    if parent is None:
        here.sort(key=lambda row: row["position"])
    return [each for row in here for each in (row, *_thread(rows, row))]


def _followed(world: World) -> Iterable[View]:
    """The newest follow first."""
    for name in ("ann", "ben", "cleo"):
        me = world.callers[name].user_id
        ids = [followed for follower, followed in reversed(world.follows) if follower == me]
        yield View("users/me/followed-users", name, [world.summary(each) for each in ids])


def _followers(world: World) -> Iterable[View]:
    """The newest follow first."""
    for name in ("ann", "ben", "cleo"):
        me = world.callers[name].user_id
        ids = [follower for follower, followed in reversed(world.follows) if followed == me]
        yield View("users/me/followers", name, [world.summary(each) for each in ids])


def _playlists(world: World) -> Iterable[View]:
    """Playlists that the caller may edit, the newest first."""
    for name in OWNERS:
        me = world.callers[name].user_id
        rows = _newest(row for row in world.playlists if me in row["editors"])
        yield View("playlists", name, [playlist(world, row) for row in rows])


def _tracks_of_playlist(world: World) -> Iterable[View]:
    """Tracks in playlist order, including repeated ones."""
    for name in OWNERS:
        me = world.callers[name].user_id
        for row in world.playlists[:4]:
            if me in row["editors"]:
                yield View(f"playlists/{row['id']}/tracks", name, [track(each, name) for each in row["tracks"]])


def _invitations(world: World) -> Iterable[View]:
    for name in OWNERS:
        rows = [row for row in world.invitations if row["to"] == world.callers[name].user_id]
        yield View("playlists/invitations", name, [invitation(world, row) for row in reversed(rows)])


def _collaborators(world: World) -> Iterable[View]:
    """The last to accept first."""
    for row in world.playlists[:2]:
        rows = [world.summary(each) for each in reversed(row["collaborators"])]
        yield View(f"playlists/{row['id']}/collaborators", "ann" if row is world.playlists[0] else "cleo", rows)


def _liked(world: World) -> Iterable[View]:
    """The last liked first."""
    yield View("users/me/likes", "ann", [track(row, "ann") for row in reversed(world.liked)])
    yield View("users/me/likes", "ben", [])


def _pending(world: World) -> Iterable[View]:
    """The most heard first, then the first that came in."""
    yield View("users/me/pending-listens", "ann", sorted(world.pending, key=lambda row: (-row["listens"], row["id"])))


def _reposted(world: World) -> Iterable[View]:
    """The last reposted first."""
    yield View("users/me/reposts", "ann", [track(row, "ann") for row in reversed(world.reposted)])


def _collections(world: World) -> Iterable[View]:
    for name in OWNERS:
        me = world.callers[name].user_id
        rows = _newest(row for row in world.collections if row["owner"] == me)
        yield View("collections", name, [collection(world, row) for row in rows])


def access_token(row: Row) -> Row:
    times = {name: row[name] and isoformat(row[name]) for name in ("created_at", "expires_at", "last_used_at")}
    return _pick(row, "id", "name", "last_four", "scope", "state") | times


def _access_tokens(world: World) -> Iterable[View]:
    for name in ("ann", "ben", "cleo"):
        me = world.callers[name].user_id
        rows = [row for row in world.access_tokens if row["owner"] == me]
        yield View("access-tokens", name, [access_token(row) for row in reversed(rows)])


def _conversations(world: World) -> Iterable[View]:
    """Conversations by newest message; one without messages by its creation."""
    for name in OWNERS:
        rows = _newest(row for row in world.conversations if world.callers[name].user_id in row["users"])
        rows.sort(key=lambda row: row["last_at"], reverse=True)
        yield View("messaging/conversations", name, [conversation(world, row) for row in rows])


def _messages(world: World) -> Iterable[View]:
    for name, number in (("ann", 0), ("ben", 0), ("ann", 3), ("ben", 13)):
        row = world.conversations[number]
        rows = [message(world, row, each) for each in _newest(row["messages"])]
        yield View(f"messaging/conversations/{row['id']}/messages", name, rows)


LISTS: Mapping[str, Callable[[World], Iterable[View]]] = {
    f"{V1}/albums": _albums,
    f"{V1}/artists": _artists,
    f"{V1}/artists/{{id}}/albums": _albums_of_artist,
    f"{V1}/artists/{{id}}/tracks": _tracks_of_artist,
    f"{V1}/genres": _genres,
    f"{V1}/tracks": _tracks,
    f"{V1}/tracks/{{id}}/comments": _comments,
    f"{V1}/users/me/followed-users": _followed,
    f"{V1}/users/me/followers": _followers,
    f"{V1}/users/me/likes": _liked,
    f"{V1}/users/me/reposts": _reposted,
    f"{V1}/users/me/pending-listens": _pending,
    f"{V1}/users/me/artists": _managed,
    f"{V1}/playlists": _playlists,
    f"{V1}/playlists/invitations": _invitations,
    f"{V1}/playlists/{{id}}/collaborators": _collaborators,
    f"{V1}/playlists/{{id}}/tracks": _tracks_of_playlist,
    f"{V1}/collections": _collections,
    f"{V1}/access-tokens": _access_tokens,
    f"{V1}/messaging/conversations": _conversations,
    f"{V1}/messaging/conversations/{{id}}/messages": _messages,
}
