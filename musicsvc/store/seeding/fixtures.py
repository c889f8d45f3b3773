"""Load the fixtures, a small example catalog with accounts, into the database. Existing rows are not changed."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import musicsvc
from musicsvc.clock import DAY
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog import genres
from musicsvc.store.engagement.comments import GAP
from musicsvc.store.engine import bulk
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    AlbumTag,
    Artist,
    Comment,
    Track,
    TrackArtist,
    TrackGenre,
    TrackTag,
    User,
)
from musicsvc.store.seeding import social
from musicsvc.store.seeding.world import PREFIX, Entries, Entry, FixtureSummary, World, columns
from musicsvc.wording import quantity

DEMO_EMAIL = "demo@musicsvc.test"
ADMIN_EMAIL = "admin@musicsvc.test"
FILES = ("accounts", "catalog", "comments", "social")


def folder(package: Path = Path(musicsvc.__file__).parent) -> Path:
    """Return the folder of the fixture files: inside an installed package, but beside the package in a source tree."""
    packed = package / "_fixtures"
    return packed if packed.is_dir() else package.parent / "fixtures"


def load(
    *, now: int, rights: bool = True, values: Mapping[str, str] | None = None, entries: Entries | None = None
) -> FixtureSummary:
    """Create the rows of `entries` that the database lacks, by default of all fixtures. Return how many were created.

    Without `rights`, new accounts have no tokens, no API access and no administrator, and nobody can use them.
    `values`: fixed values of tokens, by key.
    """
    world, given = World(now, rights, values or {}), read() if entries is None else entries
    for entry in given["account"]:
        world.accounts[entry["key"]] = _account(entry, world)
    for entry in given.get("artist", ()):
        world.artists[entry["key"]] = _artist(entry, world)
    for entry in given.get("album", ()):
        world.albums[entry["key"]] = _album(entry, world)
    for entry in given.get("track", ()):
        if _track(entry, world):
            roots = [root for root in given.get("comment", ()) if root["track"] == entry["key"]]
            _thread(roots, world, world.tracks[entry["key"]])
    social.load(given, world)
    return world.created


def read() -> Entries:
    """Return the entries of all fixture files, by kind."""
    files = [tomllib.loads((folder() / f"{name}.toml").read_text("utf-8")) for name in FILES]
    return {kind: entries for file in files for kind, entries in file.items()}


def warning(*, rights: bool) -> str | None:
    """Return a warning if the fixtures would be added to a database with other accounts, else None.

    `rights`: new accounts have rights and tokens.
    """
    entries = read()["account"]
    found = {entry["key"]: user.id for entry in entries if (user := users.find_by_email(entry["email"]))}
    others = User.select().where(User.id.not_in(list(found.values()))).count()
    missing = [entry for entry in entries if entry["key"] not in found]
    if not others or not missing:
        return None
    given = "" if not rights else f" with {quantity(sum(len(entry['tokens']) for entry in missing), 'token')}"
    admins = ", ".join(entry["email"] for entry in missing if rights and entry.get("admin"))
    return (
        f"The database has other accounts ({others:,}). This adds {quantity(len(missing), 'account')}{given}"
        f"{f' and the administrator {admins}' if admins else ''}."
        " To try them in a separate database: musicsvc serve --demo"
    )


def _account(entry: Entry, world: World) -> User:
    found = users.find_by_email(entry["email"])
    if found is not None:
        return found
    world.created["accounts"] += 1
    user = users.create(
        entry["email"],
        display_name=entry["display_name"],
        admin=world.rights and entry.get("admin", False),
        api_access=world.rights and entry.get("api_access", False),
        now=world.now - entry["days_ago"] * DAY,
        actor="fixtures",
    )
    if world.rights:
        _add_rights(user, entry, world)
    if "suspended_days_ago" in entry:
        since, why = world.now - entry["suspended_days_ago"] * DAY, entry["suspended_reason"]
        users.suspend(user, now=since, reason=why, actor="fixtures")
    return user


def _add_rights(user: User, entry: Entry, world: World) -> None:
    if entry.get("reports_plays"):
        User.update(reports_plays=True).where(User.id == user.id).execute()
    for token in entry["tokens"]:
        world.created.tokens[token["key"]] = _token(user, token, world)


def _token(user: User, entry: Entry, world: World) -> str:
    created_at, fixed = world.now - entry["days_ago"] * DAY, world.values.get(entry["key"], "")
    token, value = tokens.create(
        user,
        entry["name"],
        scope=entry.get("scope", "read-write"),
        now=created_at,
        without_access=True,
        value=fixed,
        actor="fixtures",
    )
    if "revoked_days_ago" in entry:
        tokens.revoke(token.id, entry["reason"], now=world.now - entry["revoked_days_ago"] * DAY, actor="fixtures")
    return value


def _artist(entry: Entry, world: World) -> Artist:
    manager = world.accounts[entry["manager"]].id if "manager" in entry else None
    found: Artist | None = (
        Artist.select().where(managed_by(manager), Artist.name == entry["name"]).order_by(Artist.id).first()
    )
    if found is not None:
        return found
    world.created["artists"] += 1
    values = columns(entry, Artist) | {"manager": manager, "created_at": world.now}
    created: Artist = Artist.create(**values)
    return created


def _album(entry: Entry, world: World) -> int:
    identity = _identity(entry, world)
    found: Album | None = Album.get_or_none(**identity)
    if found is not None:
        return int(found.id)
    world.created["albums"] += 1
    album_id = Album.create(**columns(entry, Album), **identity, created_at=world.now).id
    bulk.link(AlbumArtist, album_id, [world.artists[key].id for key in entry["artists"]])
    bulk.link(AlbumTag, album_id, genres.ensure_tags(entry.get("tags", [])).values())
    return int(album_id)


def _track(entry: Entry, world: World) -> bool:
    """Create the track if the database lacks it. Return True if the track was created."""
    identity = _identity(entry, world)
    found: Track | None = Track.get_or_none(**identity)
    if found is not None:
        world.tracks[entry["key"]] = int(found.id)
        return False
    world.created["tracks"] += 1
    values = columns(entry, Track)
    others = {"key": entry.get("key_name"), "album": world.albums.get(entry.get("album", ""))}
    track_id = Track.create(**values | others | identity, created_at=world.now).id
    bulk.link(TrackArtist, track_id, [world.artists[key].id for key in entry["artists"]])
    bulk.link(TrackGenre, track_id, genres.ensure(entry.get("genres", [])).values())
    bulk.link(TrackTag, track_id, genres.ensure_tags(entry.get("tags", [])).values())
    world.tracks[entry["key"]] = int(track_id)
    return True


def _identity(entry: Entry, world: World) -> Entry:
    """Return the values by column that identify an album or track of the fixtures in the database."""
    return {"external_id": PREFIX + entry["key"], "imported_for": world.artists[entry["artists"][0]].manager or 0}


def _thread(entries: list[Entry], world: World, track_id: int, parent: Comment | None = None) -> None:
    """Create comments on a track from `entries`, each followed by its replies. `parent` is the comment replied to."""
    for entry in sorted(entries, key=lambda entry: (entry.get("position", 0), -entry["days_ago"])):
        world.created["comments"] += 1
        comment = Comment.create(
            track=track_id,
            user=world.accounts[entry["by"]].id,
            parent=parent and parent.id,
            content=entry.get("content", ""),
            position=parent.position if parent else entry["position"],
            depth=parent.depth + 1 if parent else 0,
            deleted=entry.get("deleted", False),
            place=world.created["comments"] * GAP,
            created_at=world.now - entry["days_ago"] * DAY,
        )
        _thread(entry.get("replies", []), world, track_id, comment)
