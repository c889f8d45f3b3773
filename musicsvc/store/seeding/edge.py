"""Entries with extreme values that the API allows: the longest texts, unusual scripts, null, large ids, full pages."""

from collections.abc import Iterator, Sequence
from typing import Any

from musicsvc.store.accounts import users
from musicsvc.store.catalog.fields import ALL
from musicsvc.store.engine import bulk
from musicsvc.store.models import (
    Album,
    Artist,
    Collection,
    Comment,
    Conversation,
    Genre,
    Message,
    Playlist,
    Tag,
    Token,
    Track,
    User,
)
from musicsvc.store.plays.rollups import counts
from musicsvc.store.seeding.world import Entries, Entry
from musicsvc.wording import LONGEST_NAME

ROOM = 1_000_000  # for ids of new rows below the largest
LARGEST_IDS = (
    (2**53 - 1, (Collection, Comment, Conversation, Genre, Message, Playlist, Tag, Token)),
    (counts.LAST_ID, (Album, Artist, Track, User)),  # which have plays
)
PAGE, LARGEST_PAGE = 20, 100  # rows
PLAYLIST, PLAYLIST_TEXT = 250, 170  # characters of the name and the description of a playlist
TEXT, URL, TAG = 10_000, 2_048, 60  # characters of another description, an address, a tag

TOKENS: tuple[Entry, ...] = (
    {"key": "edge-read", "name": "read-only", "scope": "read", "days_ago": 1},
    {"key": "edge-expired", "name": "expired", "days_ago": 120},
    {"key": "edge-revoked", "name": "revoked", "days_ago": 40, "revoked_days_ago": 12, "reason": "lost on a train"},
)


def _longest(text: str, length: int = LONGEST_NAME) -> str:
    return (text * length)[:length]


FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"  # seven code points, one character on a screen
NAMES = (  # one page of them
    _longest("W"),
    _longest(FAMILY),
    _longest("\U0001d11e"),  # a clef: two units of UTF-16, four bytes of UTF-8
    _longest("e\u0301\u0323\u0302"),  # with combining marks
    _longest("\u05e9\u05b4\u05c1\u05d9\u05e8"),  # Hebrew with vowel points
    "Caf\u00e9",
    "Cafe\u0301",  # looks like the one before
    "\u0645\u0648\u0633\u064a\u0642\u0649",  # Arabic
    "Live \u0645\u0648\u0633\u064a\u0642\u0649 1905 \u05e9\u05d9\u05e8 (2)",  # in both directions
    "\u202egnos desrever\u202c",  # with an override of the direction
    "\U0001f1e6\U0001f1f6 \U0001f44d\U0001f3ff \u2764\ufe0f",  # a flag, a skin tone, a variation selector
    "\u0915\u094d\u0937\u0924\u094d\u0930\u093f\u092f",  # Devanagari, with conjuncts
    "\u0130stanbul \u1e9e \u01c5",  # texts that change their length with their case
    "zero\u200bwidth\ufeffspace",
    "<b>bold</b> &amp; \"double\" 'single' </script>",
    "=1+1",  # a formula in a spreadsheet
    "comma, semicolon; tab\tline\nbreak",
    "\\ / ? # % %20 {id} ${x} ..",
    "null",
    "0",
)


def start_ids() -> None:
    """Let the ids in a new SQLite database begin near the largest ones."""
    for largest, tables in LARGEST_IDS:
        for table in tables:
            bulk.start_ids(table, largest - ROOM)


def entries(accounts: Sequence[Entry]) -> Entries:
    """Return the entries of this world. The first album and track have all fields, the others as few as possible.

    `accounts`: the accounts of the fixtures.
    """
    artists, albums, tracks = [*_artists()], [*_albums()], [*_tracks()]
    keys = [track["key"] for track in tracks]
    return {
        "account": [*_with_tokens(accounts), *_followers()],
        "artist": artists,
        "album": albums,
        "track": tracks,
        "comment": [
            {"track": keys[0], "by": "demo", "content": name, "position": 5 * at, "days_ago": at}
            for at, name in enumerate(NAMES)
        ],
        "playlist": [_playlist("page", keys[:PAGE]), _playlist("pages", keys), _playlist("bare", [])],
        "follow": [{"by": f"edge-{at}", "accounts": ["demo"], "days_ago": at} for at in range(PAGE)],
        "like": [{"by": "demo", "tracks": keys[:PAGE], "days_ago": 3}],
        "repost": [{"by": "demo", "tracks": keys, "days_ago": 2}],
        "collection": [
            {"by": "demo", "name": NAMES[1], "description": _longest(NAMES[3], TEXT), "tracks": keys, "days_ago": 1},
            {"by": "demo", "name": NAMES[0], "days_ago": 1},
        ],
        "conversation": [
            {
                "between": ["demo", "label"],
                "days_ago": PAGE,
                "messages": [{"by": "label", "text": name, "days_ago": PAGE - at} for at, name in enumerate(NAMES)],
            }
        ],
    }


def _with_tokens(accounts: Sequence[Entry]) -> Iterator[Entry]:
    for account in accounts:
        yield account | {"tokens": [*account["tokens"], *TOKENS]} if account["key"] == "demo" else account


def _followers() -> Iterator[Entry]:
    for at, name in enumerate(NAMES):
        yield {
            "key": f"edge-{at}",
            "email": f"edge-{at}@example.test",
            "display_name": name[: users.NAME_LENGTH],
            "days_ago": 90,
            "tokens": [],
        }


def _image(name: str) -> str:
    start = f"https://images.example.test/{name}.jpg?size="
    return start + "9" * (URL - len(start))


def _everything(noun: str, **more: Any) -> Entry:
    """Return a value at its limit for each field that is a column, and `more` values."""
    found = {each.name: each.extreme or each.bounds[1] or each.example for each in ALL[noun] if each.is_column}
    found |= {each.name: _image(noun) for each in ALL[noun] if each.kind == "url"}
    return {name: value for name, value in found.items() if value != "" and name != "name"} | more


def _artists() -> Iterator[Entry]:
    everything = _everything("artist", description=_longest(NAMES[0], TEXT))
    for at, name in enumerate(NAMES):
        yield {"key": f"edge-{at}", "name": name, "manager": "demo"} | ({} if at else everything)


def _albums() -> Iterator[Entry]:
    artists = [f"edge-{at}" for at in range(PAGE)]
    text = _longest(NAMES[4], TEXT)
    everything = _everything("album", artists=artists, description=text, label=NAMES[1], tags=_tags())
    for at, name in enumerate(NAMES):
        yield {"key": f"edge-{at}", "name": name, "artists": ["edge-0"]} | ({} if at else everything)


def _tags() -> list[str]:
    return [name[:TAG].strip() for name in NAMES]


def _tracks() -> Iterator[Entry]:
    everything = _everything(
        "track",
        artists=[f"edge-{at}" for at in range(PAGE)],
        album="edge-0",
        description=_longest(FAMILY, TEXT),
        genres=[_longest("W", TAG), "\u0645\u0648\u0633\u064a\u0642\u0649"],
        tags=_tags(),
    )
    everything["key_name"] = everything.pop("key")  # `key` is that of the entry
    for at in range(LARGEST_PAGE):
        name = NAMES[at] if at < PAGE else f"{NAMES[at % PAGE][:240]} ({at})"
        yield {"key": f"edge-{at}", "name": name, "artists": ["edge-0"], "duration": 1} | ({} if at else everything)


def _playlist(name: str, keys: Sequence[str]) -> Entry:
    added = [{"by": "demo", "keys": keys, "days_ago": 9}] if keys else []
    texts = {"description": NAMES[2][:PLAYLIST_TEXT], "image": _image(name), "public": True} if keys else {}
    return {
        "key": f"edge-{name}",
        "owner": "demo",
        "name": NAMES[1][:PLAYLIST],
        "days_ago": 10,
        "tracks": added,
    } | texts
