"""All data of one account, for its owner: without secrets, and without the data of others."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from musicsvc.clock import isoformat
from musicsvc.store.engine.sql import stream_rows
from musicsvc.store.models import User
from musicsvc.store.plays.rollups import listeners

Row = dict[str, Any]


class Section(NamedTuple):
    """A part of the data. `columns`: the names of the columns of `rows`, the end of a SELECT with one account id."""

    columns: dict[str, str]
    rows: str


def _columns(names: str, **expressions: str) -> dict[str, str]:
    return {name: name for name in names.split()} | expressions


IN_PLAYLIST = (
    "playlist_track e JOIN playlist p ON p.id = e.playlist_id JOIN track t ON t.id = e.track_id JOIN account a"
    " ON a.id = ? LEFT JOIN playlist_invite i ON i.playlist_id = p.id AND i.user_id = a.id AND i.state = 'accepted'"
)


def _if_seen(condition: str) -> str:
    """Return the name of a playlist, if it is public or the account may see it all the same."""
    return f"CASE WHEN p.public OR {condition} THEN p.name END"


# What names a track elsewhere too.
TRACK = {
    "track": "t.name",
    "artists": "(SELECT string_agg(n.name, '; ') FROM (SELECT r.name FROM track_artist c JOIN artist r"
    " ON r.id = c.artist_id WHERE c.track_id = t.id ORDER BY c.position) AS n)",
    "isrc": "t.isrc",
}
GIVEN = _columns("track_id", **TRACK, given_at="g.created_at")
SECTIONS: dict[str, Section] = {
    "account": Section(
        _columns(
            "id email display_name avatar admin api_access reports_plays suspended_at suspended_reason created_at"
            " external_id purpose"
        ),
        "account WHERE id = ?",
    ),
    "access_requests": Section(
        _columns("id email use_case volume organization state reason created_at decided_at"),
        "access_request WHERE email_key = (SELECT email_key FROM account WHERE id = ?) ORDER BY id",
    ),
    "sessions": Section(_columns("created_at last_used_at address agent"), "session WHERE user_id = ? ORDER BY id"),
    "tokens": Section(
        _columns("id name last_four scope created_at expires_at last_used_at revoked_at revoked_reason"),
        "token WHERE user_id = ? ORDER BY id",
    ),
    "share_links": Section(
        _columns(
            "id created_at expires_at period programs",
            kind="CASE kind WHEN 1 THEN 'track' WHEN 2 THEN 'album' ELSE 'artist' END",
        )
        | {"subject_id": "s.subject"},
        "report_link l JOIN report_link_subject s ON s.report_link_id = l.id WHERE l.user_id = ?"
        " ORDER BY l.id, s.position",
    ),
    "devices": Section(
        _columns("id platform device_name created_at updated_at"), "device WHERE user_id = ? ORDER BY id"
    ),
    "notifications": Section(
        _columns("notif_id email in_app mobile"), "notification_choice WHERE user_id = ? ORDER BY notif_id"
    ),
    "artists": Section(_columns("id name created_at"), "artist WHERE manager_id = ? ORDER BY id"),
    "artist_offers": Section(
        {"id": "o.id", "artist_id": "a.artist_id"} | _columns("email note created_at expires_at"),
        "artist_offer o LEFT JOIN artist_offer_artist a ON a.artist_offer_id = o.id WHERE o.user_id = ?"
        " ORDER BY o.id, a.artist_id",
    ),
    "received_offers": Section(
        {"id": "o.id", "sender": "s.display_name", "created_at": "o.created_at", "expires_at": "o.expires_at"},
        "artist_offer o JOIN account s ON s.id = o.user_id WHERE o.recipient_id = ? ORDER BY o.id",
    ),
    "imports": Section(
        _columns("id kind file state rows started_at undone_at"), "import_run WHERE user_id = ? ORDER BY id"
    ),
    "uploads": Section(_columns("id kind file step state created_at"), "import_task WHERE user_id = ? ORDER BY id"),
    "import_rules": Section(_columns("heading signs set_at"), "divide_rule WHERE user_id = ? ORDER BY heading"),
    "playlists": Section(
        _columns("id name description image public collaborative created_at"), "playlist WHERE owner_id = ? ORDER BY id"
    ),
    "playlist_tracks": Section(
        {"playlist_id": "p.id", "playlist": _if_seen("p.owner_id = a.id OR i.id IS NOT NULL"), "track_id": "t.id"}
        | TRACK
        | {"added_at": "e.added_at"},
        f"{IN_PLAYLIST} WHERE p.owner_id = a.id OR e.added_by_id = a.id ORDER BY p.id, e.id",
    ),
    "invitations": Section(
        {
            "playlist_id": "p.id",
            "playlist": _if_seen("i.state = 'accepted' OR i.state = 'pending' AND i.expires_at > ?"),
        }
        | _columns("state expires_at answered_at", created_at="i.created_at"),
        "playlist_invite i JOIN playlist p ON p.id = i.playlist_id WHERE i.user_id = ? ORDER BY i.id",
    ),
    "collections": Section(_columns("id name description created_at"), "collection WHERE user_id = ? ORDER BY id"),
    "collection_tracks": Section(
        {"collection_id": "c.id", "track_id": "t.id"} | TRACK,
        "collection c JOIN collection_track e ON e.collection_id = c.id JOIN track t ON t.id = e.track_id"
        " WHERE c.user_id = ? ORDER BY c.id, e.position",
    ),
    "likes": Section(
        GIVEN, "track_like g JOIN track t ON t.id = g.track_id WHERE g.user_id = ? ORDER BY g.created_at, t.id"
    ),
    "reposts": Section(
        GIVEN, "track_repost g JOIN track t ON t.id = g.track_id WHERE g.user_id = ? ORDER BY g.created_at, t.id"
    ),
    "following": Section(
        {"user_id": "a.id", "display_name": "a.display_name", "followed_at": "f.created_at"},
        "follow f JOIN account a ON a.id = f.followed_id WHERE f.follower_id = ? ORDER BY f.id",
    ),
    "followers": Section(
        {"user_id": "a.id", "display_name": "a.display_name", "followed_at": "f.created_at"},
        "follow f JOIN account a ON a.id = f.follower_id WHERE f.followed_id = ? ORDER BY f.id",
    ),
    "comments": Section(
        _columns("track_id content parent_id deleted", id="c.id", track="t.name", position="c.position")
        | {"created_at": "c.created_at"},
        "comment c JOIN track t ON t.id = c.track_id WHERE c.user_id = ? ORDER BY c.id",
    ),
    "messages": Section(
        _columns("id conversation_id message_text created_at"), "message WHERE user_id = ? ORDER BY id"
    ),
    "pending_listens": Section(
        _columns("id artist title release isrc external_id platform played_at received_at"),
        "pending_listen WHERE user_id = ? AND (counted_for IS NULL OR counted_for < 0) ORDER BY id",
    ),
    "refused_listens": Section(_columns("reason listens last_at"), "refused_listen WHERE user_id = ? ORDER BY reason"),
    "kept_answers": Section(_columns("key path kept_at"), "kept_answer WHERE user_id = ? ORDER BY id"),
    "own_plays": Section(
        _columns("track_id played_at duration_ms reported_at platform", **TRACK),
        "play p LEFT JOIN track t ON t.id = p.track_id"
        " WHERE p.reporter > 0 AND p.reporter = ? AND p.listener_id = (SELECT id FROM listener WHERE key = ?)"
        " ORDER BY p.reported_at, p.slot, p.track_id",
    ),
    "security_events": Section(
        _columns("at kind token_id actor reason"), "security_event WHERE account_id = ? ORDER BY id"
    ),
}
FLAGS = {"admin", "api_access", "reports_plays", "public", "collaborative", "deleted", "email", "in_app", "mobile",
         "programs"}  # fmt: skip


def sections(user: User, now: int) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the name of each section of the account's data, with its rows; first `account`, with a single row.

    Read the rows in the same transaction.
    """
    values: dict[str, tuple[Any, ...]] = {
        "invitations": (now, user.id),
        "own_plays": (user.id, listeners.account_key(user.id)),
    }
    for name, section in SECTIONS.items():
        yield name, _rows(section, values.get(name, (user.id,)))


def _rows(section: Section, values: tuple[Any, ...]) -> Iterator[Row]:
    columns = ", ".join(f"{expression} AS {name}" for name, expression in section.columns.items())
    for row in stream_rows(f"SELECT {columns} FROM {section.rows}", *values):  # noqa: S608 - our own names
        yield {name: _value(name, value) for name, value in zip(section.columns, row, strict=True)}


def _value(name: str, value: Any) -> Any:
    """Return a value for JSON: times as text, and flags, which SQLite stores as integers, as true or false."""
    if not isinstance(value, int):
        return value
    if name in FLAGS:
        return bool(value)
    return isoformat(value) if name == "at" or name.endswith("_at") else value
