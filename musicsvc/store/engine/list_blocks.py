"""Find the length and any page of a long list without reading the whole list, from stored row counts of its blocks.

A list of more than 4,096 rows is divided into blocks of 2,048 to 4,096 rows, in ascending order of its sort key.
Triggers in the database update the row count of a block in every transaction that changes the list, so
the counts are always exact. Shorter lists have no blocks: their rows are counted.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from musicsvc.store.engine.sql import fetch, is_sqlite, run

LONGEST = 4096  # rows of a list without blocks, and of a block
TOTAL = """
    SELECT coalesce(
        (SELECT CAST(sum(size) AS bigint) FROM list_block WHERE list = {list.number} AND owner = ?),
        (SELECT count(*) FROM {list.table} WHERE {list.owner} = ?)
    )
"""
BLOCKS = """
    SELECT first_key, first_id, CAST(sum(size) AS bigint) FROM list_block WHERE list = ? AND owner = ?
    GROUP BY first_key, first_id ORDER BY first_key, first_id
"""
BEGIN = """
    INSERT INTO list_block (list, owner, first_key, first_id, slot, size)
    SELECT {list.number}, {list.owner}, 0, 0, 0, count(*) FROM {list.table} GROUP BY 2 HAVING count(*) > {longest}
"""
DIVIDE = "SELECT list_{list.number}_divide(owner) FROM list_block WHERE list = ?"
DIFFERENCES = """
    SELECT owner, first_key, first_id, size, found FROM (
        SELECT owner, first_key, first_id, size,
            (SELECT count(*) FROM {list.table} WHERE {list.owner} = block.owner
            AND ({list.keys}) >= (first_key, first_id) AND ({list.keys}) < (next_key, next_id)) AS found
        FROM (
            SELECT owner, first_key, first_id, CAST(sum(size) AS bigint) AS size,
                lead(first_key, 1, 9223372036854775807) OVER {order} AS next_key,
                lead(first_id, 1, 0) OVER {order} AS next_id
            FROM list_block WHERE list = {list.number} GROUP BY owner, first_key, first_id
        ) AS block
    ) AS compared
    WHERE size <> found ORDER BY owner, first_key, first_id
"""
WRONG_RANK = "counts: the tracks of artist {} are ranked by wrong plays"
WRONG_RANKS = """
    SELECT l.artist_id FROM track_artist l LEFT JOIN track_plays p ON p.track_id = l.track_id
    WHERE l.artist_id IN (SELECT artist_id FROM track_rank) AND NOT EXISTS (
        SELECT 1 FROM track_rank r
        WHERE r.artist_id = l.artist_id AND r.plays = coalesce(p.plays, 0) AND r.track_id = l.track_id
    )
    UNION
    SELECT r.artist_id FROM track_rank r LEFT JOIN track_plays p ON p.track_id = r.track_id
    WHERE r.plays <> coalesce(p.plays, 0)
    OR NOT EXISTS (SELECT 1 FROM track_artist l WHERE l.artist_id = r.artist_id AND l.track_id = r.track_id)
"""
RANK = """
    INSERT INTO track_rank (artist_id, plays, track_id) SELECT l.artist_id, coalesce(p.plays, 0), l.track_id
    FROM track_artist l LEFT JOIN track_plays p ON p.track_id = l.track_id
    WHERE l.artist_id IN (SELECT owner FROM list_block WHERE list = 7) ON CONFLICT DO NOTHING
"""
ORDER = "(PARTITION BY owner ORDER BY first_key, first_id)"


class Block(NamedTuple):
    """A block: the sort key of its first row (`first_key`, `first_id`), and the number of rows before the block."""

    first_key: int
    first_id: int
    before: int


@dataclass(frozen=True, slots=True)
class LongList:
    """A kind of list, such as the comments of a track. `owner` is the column with the id of the track, account, etc.

    It is 0 for a list of all rows of the table. `keys` are the two columns that sort the blocks; the second may be 0.
    Pages show this order reversed if `descending` is True, this order if False, and another order if None.
    """

    number: int
    name: str
    table: str
    owner: str = "0"
    keys: str = "id, 0"
    descending: bool | None = True

    def total(self, owner: object) -> int:
        """Return the number of rows in the list of the track, account, etc. with the id `owner`."""
        ((total,),) = fetch(TOTAL.format(list=self), owner, owner)
        return int(total)

    def locate(self, owner: object, row: int) -> Block | None:
        """Return the block that contains the row with index `row` in ascending order, or None without blocks."""
        before = 0
        for first_key, first_id, size in fetch(BLOCKS, self.number, owner):
            if row < before + size:
                return Block(first_key, first_id, before)
            before += size
        return None


ALBUMS = LongList(1, "albums", "album")
ARTISTS = LongList(2, "artists", "artist")
GENRES = LongList(3, "genres", "genre", descending=None)
PLAYLISTS = LongList(4, "playlists of account {}", "playlist", "owner_id")
COMMENTS = LongList(5, "comments of track {}", "comment", "track_id", "place, id", descending=False)
ARTIST_ALBUMS = LongList(6, "albums of artist {}", "album_artist", "artist_id", "album_id, 0", descending=None)
ARTIST_TRACKS = LongList(7, "tracks of artist {}", "track_artist", "artist_id", "track_id, 0", descending=None)
PLAYLIST_TRACKS = LongList(8, "tracks of playlist {}", "playlist_track", "playlist_id", descending=False)
FOLLOWERS = LongList(9, "followers of account {}", "follow", "followed_id")
FOLLOWED = LongList(10, "accounts that account {} follows", "follow", "follower_id")
MESSAGES = LongList(11, "messages of conversation {}", "message", "conversation_id")
CONVERSATIONS = LongList(12, "conversations of {}", "participant", "user_id", "conversation_id, 0", descending=None)
COLLECTIONS = LongList(13, "collections of account {}", "collection", "user_id")
TRACK_RANKS = LongList(14, "ranked tracks of artist {}", "track_rank", "artist_id", "plays, track_id")
TRACKS = LongList(15, "tracks", "track")
GENRE_TRACKS = LongList(16, "tracks of genre {}", "track_genre", "genre_id", "track_id, 0")
LISTS = (
    ALBUMS, ARTISTS, GENRES, PLAYLISTS, COMMENTS, ARTIST_ALBUMS, ARTIST_TRACKS, PLAYLIST_TRACKS, FOLLOWERS, FOLLOWED,
    MESSAGES, CONVERSATIONS, COLLECTIONS, TRACK_RANKS, TRACKS, GENRE_TRACKS,
)  # fmt: skip
NEWEST_ARTIST_TRACKS = replace(ARTIST_TRACKS, descending=True)  # the same blocks, for pages in another order


def differences() -> list[str]:
    """Return one line for each list with a wrong stored row count, or with wrong plays of a ranked track."""
    found: dict[str, str] = {}
    for each in LISTS:
        for owner, _, _, size, actual in fetch(DIFFERENCES.format(list=each, order=ORDER)):
            name = each.name.format(owner)
            found.setdefault(name, f"counts: a block of the {name} has {actual} rows, not {size}")
    found |= {f"ranks {artist}": WRONG_RANK.format(artist) for (artist,) in fetch(WRONG_RANKS)}
    return list(found.values())


def rebuild() -> None:
    """Count all long lists again, and rank the tracks of artists with long lists again. Call in a write transaction."""
    if not is_sqlite():
        run(f"LOCK TABLE {', '.join(sorted({each.table for each in LISTS}))}, track_plays IN SHARE MODE")
    run("DELETE FROM track_rank")
    for each in LISTS:
        run("DELETE FROM list_block WHERE list = ?", each.number)
        run(BEGIN.format(list=each, longest=LONGEST))
        # A trigger or a function divides the block.
        if is_sqlite():
            run("UPDATE list_block SET size = size WHERE list = ?", each.number)
        else:
            run(DIVIDE.format(list=each), each.number)
        if each is ARTIST_TRACKS:
            run(RANK)
