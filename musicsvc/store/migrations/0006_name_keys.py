"""Compare names by their keys: keep the spellings that imports look for, and renew search indexes and plays' hashes.

Programs of 0.1.0 go on with their own keys. Names that they write after the migration are indexed by a recount.
"""

import re
import unicodedata
from hashlib import blake2b

from peewee import SqliteDatabase

from musicsvc.store.engine import name_index
from musicsvc.store.engine.name_keys import folded_key, name_key
from musicsvc.store.engine.sql import bound, run_many, stream_rows
from musicsvc.store.schema import schema

oldest_program = "0.1.0"

TABLE = """
    CREATE TABLE name_spelling (
        key TEXT {collation} NOT NULL, source TEXT {collation} NOT NULL, id {number} NOT NULL, name TEXT NOT NULL,
        PRIMARY KEY (key, source, id)
    ) {options}
"""
SOURCES = ("artist", "album", "track", "playlist", "merged", "account")
IGNORED = {"Cc", "Cf", "Me"}
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "\u0131": "i", "æ": "ae", "œ": "oe"})
CREDITS = """
    SELECT t.id, t.name, a.name FROM track t
    JOIN track_artist c ON c.track_id = t.id JOIN artist a ON a.id = c.artist_id
    ORDER BY t.id, c.position
"""
FORMER_CREDITS = """
    SELECT m.id, m.name, a.name FROM merged m
    JOIN merged_credit c ON c.merged_id = m.id JOIN artist a ON a.id = c.artist_id
    WHERE m.kind = 1 ORDER BY m.id, c.artist_id
"""
RENEW = """
    UPDATE play SET names_hash = (SELECT renewed FROM former_hash WHERE former = names_hash)
    WHERE names_hash IN (SELECT former FROM former_hash)
"""


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    number, collation, options = ("INTEGER", "", "WITHOUT ROWID, STRICT") if sqlite else ("BIGINT", 'COLLATE "C"', "")
    db.execute_sql(TABLE.format(number=number, collation=collation, options=options))
    with bound(db):
        _renew_hashes(db, number)
        for place, source in enumerate(SOURCES):
            schema.report_progress(1 + place, 1 + len(SOURCES))
            for batch in name_index.all_names(source):
                names = [(row_id, name) for row_id, name, _ in batch]
                if source != "account":
                    name_index.spell(source, names)
                if source != "merged":
                    _index_again(name_index.ALL_INDEXES[source], [row[:2] for row in batch if row[2]], sqlite)


def _renew_hashes(db, number):
    """Renew the hashes of plays that were imported without ids, by the names that their tracks have now."""
    db.execute_sql(f"CREATE TEMPORARY TABLE former_hash (former {number} PRIMARY KEY, renewed {number} NOT NULL)")
    found = False
    for statement in (CREDITS, FORMER_CREDITS):
        for pairs in _batches(_hashes(stream_rows(statement))):
            run_many("INSERT INTO former_hash VALUES (?, ?) ON CONFLICT DO NOTHING", pairs)
            found = True
    if found:
        db.execute_sql(RENEW)
    db.execute_sql("DROP TABLE former_hash")


def _batches(pairs):
    batch = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == name_index.BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _hashes(rows):
    """Yield the former and the new hash of the names of tracks, where they differ, of all artists and of the first."""
    last, track, artists = None, "", []
    for row_id, name, artist in rows:
        if row_id != last:
            yield from _of_track(track, artists)
            last, track, artists = row_id, name, []
        artists.append(artist)
    yield from _of_track(track, artists)


def _of_track(track, artists):
    keys = [name_key(name) for name in (track, *artists)]
    if keys == [track, *artists]:
        return
    for count in {1, len(artists)}:
        yield _hash(tuple(artists[:count]), track), _hash(tuple(keys[1 : 1 + count]), keys[0])


def _hash(artists, track):
    return int.from_bytes(blake2b(repr(((artists, track), None)).encode(), digest_size=8).digest()) >> 1


def _index_again(index, names, sqlite):
    """Index names again whose entries were others: only names with other characters than ASCII."""
    changed = [(row_id, name) for row_id, name in names if not name.isascii() and _differs(name)]
    key = "rowid" if sqlite else "key"
    former = [(min(len(_fold(name)), 1023) << 53 | row_id,) for row_id, name in changed]
    run_many(f"DELETE FROM {index.table} WHERE {key} = ?", former)
    index.add(changed)


def _differs(name):
    folded = folded_key(name)
    return folded != _fold(name) or bool(re.search(f"[{name_index.WITHOUT_BLANKS}]", folded))


def _fold(text):
    """Return the form in which the indexes had a name before."""
    text = " ".join(text.split())
    text = "".join(char for char in unicodedata.normalize("NFKD", text) if not _ignored(char)).casefold()
    return " ".join(unicodedata.normalize("NFC", text.translate(PLAIN)).split())


def _ignored(char):
    variant = "\ufe00" <= char <= "\ufe0f"
    return variant or bool(unicodedata.combining(char)) or unicodedata.category(char) in IGNORED
