"""Indexes of names for searches that ignore case and accents, with the best matches first.

An index marks the beginning of each name and word with special characters. In scripts without blanks, each character
begins a word. Its keys sort by length of the name, then by id, so that the best matches of a search have the lowest
keys. On SQLite it is an FTS5 table of trigrams, on PostgreSQL a table with a trigram index.

Triggers insert each name of an artist, album, track or playlist that a transaction adds, changes or deletes into the
table `name_change`. Before COMMIT, the transaction updates the indexes and empties this table, so other transactions
never see its rows.

The table `name_spelling` has the names that differ from their keys (`name_keys.name_key`), so that imports find all
names with a key: those that equal it, and these.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from musicsvc.store.engine.name_keys import folded_key, is_plain, name_key
from musicsvc.store.engine.sql import current, fetch, in_list, is_sqlite, run, run_many
from musicsvc.store.engine.tables import current_tables

# Two characters each, so that a mark and one letter make a trigram. No folded name contains them: they become a and o.
NAME_BEGINS, WORD_BEGINS = "ªª", "ºº"
# Han, kana, Hangul, Thai, Lao, Khmer and Myanmar.
WITHOUT_BLANKS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u303c"
    "\u3041-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\ua9e0-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff"
    "\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# A place before a character of these scripts, or before a letter or digit and after another character or one of them.
LATER_WORD = re.compile(rf"(?<=.)(?=[{WITHOUT_BLANKS}])|(?<=[\W_{WITHOUT_BLANKS}])(?=[^\W_])")
ASCII_WORDS = re.compile(r"[^\W_]+[\W_]*|[\W_]+", re.ASCII)  # with the signs behind each
TRIGRAM = 3
ID_BITS, LONGEST = 53, 1023
ID_MASK = (1 << ID_BITS) - 1
ORDERED = 2  # fewer results are in order
SHORTEST = 3000  # names that PostgreSQL scans before it uses the trigram index
LONGEST_START = 5  # the longest beginning of a name, with its mark, for which PostgreSQL has an index
PHRASES = "SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid >= ? {also} ORDER BY rowid LIMIT ?"
STARTS = "SELECT key FROM {table} WHERE left(name, {length}) = ? {also} ORDER BY key LIMIT ?"
# Two statements, because a single one takes a second for a pattern that no name contains.
AMONG_SHORTEST = """
    WITH shortest AS MATERIALIZED (SELECT key, name FROM {table} ORDER BY key LIMIT ?)
    SELECT key FROM shortest WHERE name LIKE ? {also} ORDER BY key LIMIT ?
"""
AMONG_ALL = "SELECT key FROM {table} WHERE name LIKE ? {also} ORDER BY key + 0 LIMIT ?"
IDS = "SELECT {key} & {mask} AS id FROM {table} WHERE "
EQUAL = "left(name, {length}) {starts} AND key BETWEEN ? AND ? AND name {among}"
COUNT = "SELECT count(*) FROM ({ids}) AS found"
NEWEST = "{ids} ORDER BY id DESC LIMIT ? OFFSET ?"
INSERT = "INSERT INTO {table} (rowid, name) VALUES (?, ?)"
DELETE = "DELETE FROM {table} WHERE {key} = ?"
NOTES = "name_change"
TAKE = f"DELETE FROM {NOTES} RETURNING source, id, name"  # noqa: S608 - a constant
NAMES = "SELECT id, name, {indexed} FROM {source} WHERE id {among} ORDER BY id"
COUNTS = "SELECT (SELECT count(*) FROM {source} WHERE {indexed}), (SELECT count(*) FROM {index})"
NEXT = "SELECT id, {name}, {indexed} FROM {source} WHERE id > ? ORDER BY id LIMIT ?"
SPELLINGS = "name_spelling"
KEY = 64  # characters of a key that are stored: names whose keys begin alike are compared by those who find them
SPELL = f"""
    INSERT INTO {SPELLINGS} (key, source, id, name) VALUES (?, ?, ?, ?)
    ON CONFLICT (key, source, id) DO UPDATE SET name = excluded.name
"""  # noqa: S608 - a constant
UNSPELL = f"DELETE FROM {SPELLINGS} WHERE key = ? AND source = ? AND id = ?"  # noqa: S608 - a constant
SPELLED = f"SELECT name FROM {SPELLINGS} WHERE key {{among}}"  # noqa: S608 - a constant
BATCH = 10_000
LONGEST_PHRASE = 64  # of a name that is looked up on SQLite, which takes time for each of its trigrams

Condition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class NameIndex:
    """A search index of names, stored in the table `table`, that finds the ids of rows by their names."""

    table: str

    def find(self, text: str, limit: int, condition: Condition | None = None) -> list[int]:
        """Return up to `limit` ids of rows whose names contain `text`, best matches first.

        `condition`: SQL that a row must fulfil, with `{id}` in place of its id and one placeholder, and its value.
        Names that begin with `text` come first, then names with a word that begins with `text`. All other names follow
        only if `text` has three characters or more. Within each of these groups, shorter names come first.
        """
        starts, anywhere = _patterns(folded_key(text))
        # The results of better patterns match the others too, so request as many more.
        others = [key & ID_MASK for each in anywhere for key in self._keys(each, 2 * limit, condition)]
        if anywhere and len(others) < ORDERED:
            return others[:limit]
        ids: dict[int, None] = {}
        for pattern in starts:
            if len(ids) < limit:
                ids |= dict.fromkeys(key & ID_MASK for key in self._keys(pattern, limit + len(ids), condition))
        return list(ids | dict.fromkeys(others))[:limit]

    def equal(self, names: Collection[str]) -> set[int]:
        """Return the ids of rows whose folded names equal those of `names`; of long ones, also others that begin alike.

        PostgreSQL takes one statement for all, SQLite one for each, which reads names of its length only.
        """
        folded = {each for each in map(folded_key, names) if each}
        patterns = {NAME_BEGINS + _marked(each): _key(0, each) for each in folded}
        if not patterns:
            return set()
        if is_sqlite():
            phrases = PHRASES.format(table=self.table, also="AND rowid <= ?")
            named = ((_phrase(each[:LONGEST_PHRASE]), key, key | ID_MASK, -1) for each, key in patterns.items())
            return {key & ID_MASK for values in named for key in _first_column(phrases, *values)}
        (starts, first), (among, all_) = in_list({each[:LONGEST_START] for each in patterns}), in_list(patterns)
        ids = IDS.format(table=self.table, key="key", mask=ID_MASK)
        equal = ids + EQUAL.format(length=LONGEST_START, starts=starts, among=among)
        return {*_first_column(equal, first, min(patterns.values()), max(patterns.values()) | ID_MASK, all_)}

    def newest(self, text: str, limit: int, offset: int) -> tuple[list[int], int]:
        """Return a page of the ids of all rows whose names match `text`, newest first, and the number of these rows."""
        values = self.conditions(text)
        if not values:
            return [], 0
        before, between = self.ids_where()
        ids = between.join([before + "?"] + ["?"] * (len(values) - 1))
        ((total,),) = fetch(COUNT.format(ids=ids), *values)
        return _first_column(NEWEST.format(ids=ids), *values, limit, offset) if offset < total else [], total

    def conditions(self, text: str) -> list[Any]:
        """Return SQL parameters that match all names with `text`, or an empty list if `text` is empty."""
        folded = folded_key(text)
        starts, anywhere = _patterns(folded)
        patterns = anywhere or starts
        if is_sqlite() and patterns:
            return [" OR ".join(map(_phrase, patterns)), _key(0, folded)]
        return [*map(_like, patterns)]

    def ids_where(self) -> tuple[str, str]:
        """Return SQL for the ids of names that match the parameters of `conditions`, in two parts.

        The first part belongs before the placeholder of the first parameter, the second before each further one.
        """
        ids = partial(IDS.format, table=self.table, mask=ID_MASK)
        if is_sqlite():
            return ids(key="rowid") + f"{self.table} MATCH ", " AND rowid >= "
        return ids(key="key") + "name LIKE ", " OR name LIKE "

    def _keys(self, pattern: str, limit: int, condition: Condition | None) -> Sequence[int]:
        """Return the lowest `limit` keys of names that contain the pattern. Lower keys are better matches."""
        of = f"({f'{self.table}.rowid' if is_sqlite() else 'key'} & {ID_MASK})"
        also, values = ("", []) if condition is None else (f"AND {condition[0].format(id=of)}", [condition[1]])
        parts = {"table": self.table, "also": also}
        if is_sqlite():
            # A phrase of many words costs time for each name with all of its trigrams: shorter names are left out.
            shortest = _key(0, pattern.replace(NAME_BEGINS, "").replace(WORD_BEGINS, ""))
            return _first_column(PHRASES.format(**parts), _phrase(pattern), shortest, *values, limit)
        if pattern.startswith(NAME_BEGINS) and len(pattern) <= LONGEST_START:
            return _first_column(STARTS.format(length=len(pattern), **parts), pattern, *values, limit)
        found = _first_column(AMONG_SHORTEST.format(**parts), SHORTEST, _like(pattern), *values, limit)
        if len(found) < limit:
            found = _first_column(AMONG_ALL.format(**parts), _like(pattern), *values, limit)
        return found

    def add(self, names: Iterable[tuple[int, str]]) -> None:
        """Add names, given as (id, name) pairs, to the index, which must not contain these pairs yet."""
        folded = [(row_id, folded_key(name)) for row_id, name in names]
        rows = [(_key(row_id, name), NAME_BEGINS + _marked(name)) for row_id, name in folded]
        rows.sort()  # before a lower key, FTS5 would write what it holds to a segment of its own
        connection: Any = current().connection()
        if is_sqlite():
            connection.executemany(INSERT.format(table=self.table), rows)
            return
        with connection.cursor() as cursor, cursor.copy(f"COPY {self.table} (key, name) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def remove(self, names: Iterable[tuple[int, str]]) -> None:
        """Remove names, given as (id, name) pairs, from the index. Ignore pairs that the index does not contain."""
        key = "rowid" if is_sqlite() else "key"
        rows = [(_key(row_id, folded_key(name)),) for row_id, name in names]
        run_many(DELETE.format(table=self.table, key=key), rows)


def rank(name: str, text: str) -> tuple[int, int] | None:
    """Return the place of a name in the order in which an index finds names by `text`, or None if it does not match."""
    folded, wanted = folded_key(name), folded_key(text)
    if wanted not in folded:
        return None
    marked = NAME_BEGINS + _marked(folded)
    starts, anywhere = _patterns(wanted)
    places = (place for place, pattern in enumerate(starts + anywhere) if pattern in marked)
    place = next(places, None)
    return None if place is None else (place, min(len(folded), LONGEST))


def _patterns(folded: str) -> tuple[list[str], list[str]]:
    """Return two lists of search patterns: for the beginning of a name or a word, and for any part of a name.

    The second list is empty for texts of one or two characters.
    """
    if not folded:
        return [], []
    marked = _marked(folded)
    return [NAME_BEGINS + marked, WORD_BEGINS + marked], [marked] if len(folded) >= TRIGRAM else []


def _marked(folded: str) -> str:
    """Return the text with the mark `WORD_BEGINS` before each word except the first."""
    if folded.isascii() and folded.replace(" ", "").isalnum():  # most names; keys have single blanks
        return folded.replace(" ", f" {WORD_BEGINS}")
    if folded.isascii():
        return WORD_BEGINS.join(ASCII_WORDS.findall(folded))
    return LATER_WORD.sub(WORD_BEGINS, folded)


def _phrase(pattern: str) -> str:
    """Quote the pattern as a phrase of SQLite's FTS5."""
    return '"' + pattern.replace('"', '""') + '"'


def _like(pattern: str) -> str:
    """Return an SQL LIKE pattern that matches `pattern` anywhere in a name."""
    return "%" + pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"


def _first_column(sql: str, *values: Any) -> list[int]:
    return [row[0] for row in fetch(sql, *values)]


def _key(row_id: int, folded: str) -> int:
    return min(len(folded), LONGEST) << ID_BITS | row_id


ARTISTS = NameIndex("artist_search")
ALBUMS = NameIndex("album_search")
TRACKS = NameIndex("track_search")
PLAYLISTS = NameIndex("playlist_search")
ACCOUNTS = NameIndex("account_search")
INDEXES = {"artist": ARTISTS, "album": ALBUMS, "track": TRACKS, "playlist": PLAYLISTS}  # by table
ALL_INDEXES = {**INDEXES, "account": ACCOUNTS}  # no trigger notes the names of accounts
INDEXED = {"playlist": "public", "account": "suspended_at IS NULL"}  # the rows that are indexed, if not all
MERGED = "merged"  # no trigger notes the names of what was merged
NAMED_BY = {"account": "display_name"}  # the column of the names, if not `name`


def index_changed_names(statements: Iterable[str]) -> None:
    """Update the indexes if a statement may have changed a name. `statements`: all SQL of the transaction."""
    tables = current_tables()
    if all(INDEXES.keys().isdisjoint(tables.changed(each)) for each in statements) or NOTES not in tables.names:
        return
    for source, former, names in _take_changed():
        INDEXES[source].remove(former)
        INDEXES[source].add((row_id, name) for row_id, name, indexed in names if indexed)


def _take_changed() -> Iterator[tuple[str, list[tuple[int, str]], list[Any]]]:
    """Yield table, former names and present names (id, name, whether it is indexed) of the rows noted so far.

    The spellings are right then.
    """
    former: dict[str, list[tuple[int, str]]] = {}
    changed: dict[str, set[int]] = {}
    for source, row_id, name in fetch(TAKE):
        changed.setdefault(source, set()).add(row_id)
        if name is not None:
            former.setdefault(source, []).append((row_id, name))
    for source, ids in changed.items():
        among, values = in_list(ids)
        names = fetch(NAMES.format(source=source, indexed=_indexed(source), among=among), values)
        before = former.get(source, [])
        unspell(source, before)
        spell(source, [row[:2] for row in names])
        yield source, before, names


def spell(source: str, names: Iterable[tuple[int, str]]) -> None:
    """Add names, given as (id, name) pairs of rows of the table `source`, to the spellings if they are none yet."""
    keyed = ((name_key(name), row_id, name) for row_id, name in names if not is_plain(name))
    run_many(SPELL, [(key[:KEY], source, row_id, name) for key, row_id, name in keyed if key != name])


def unspell(source: str, names: Iterable[tuple[int, str]]) -> None:
    """Remove names, given as (id, name) pairs of rows of the table `source`, from the spellings."""
    run_many(UNSPELL, [(name_key(name)[:KEY], source, row_id) for row_id, name in names if name_key(name) != name])


def spell_noted() -> None:
    """Let `spellings` find the names that a transaction has written so far, which will be rolled back."""
    for _ in _take_changed():
        pass


def spellings(names: Collection[str]) -> set[str]:
    """Return all spellings of these names that rows may have. Others may be among them."""
    keys = set(map(name_key, names))
    among, values = in_list({key[:KEY] for key in keys})
    return keys.union(names, (name for (name,) in fetch(SPELLED.format(among=among), values)))


def differences() -> list[str]:
    """Return one line for each index whose number of names differs from the number of rows in its table."""
    found = []
    for source, index in INDEXES.items():
        ((rows, names),) = fetch(COUNTS.format(source=source, indexed=_indexed(source), index=index.table))
        if rows != names:
            found.append(f"search: the index of the names of {source}s has {names} entries, not {rows}")
    return found


def rebuild() -> None:
    """Index all names again, in a write transaction."""
    if not is_sqlite():
        run(f"LOCK TABLE {', '.join(ALL_INDEXES)} IN SHARE MODE")
    run(f"DELETE FROM {NOTES}")  # noqa: S608 - a constant
    for table in (SPELLINGS, *(index.table for index in ALL_INDEXES.values())):
        run(f"DELETE FROM {table}")  # noqa: S608 - our own names
    for source in (*ALL_INDEXES, MERGED):
        for names in all_names(source):
            if source in ALL_INDEXES:
                ALL_INDEXES[source].add((row_id, name) for row_id, name, indexed in names if indexed)
            if source != "account":
                spell(source, [row[:2] for row in names])


def all_names(source: str) -> Iterator[list[Any]]:
    """Yield batches of id, name and whether it is indexed of all rows of a table, by id."""
    following = NEXT.format(source=source, name=NAMED_BY.get(source, "name"), indexed=_indexed(source))
    last = 0
    while names := fetch(following, last, BATCH):
        yield names
        last = names[-1][0]


def _indexed(source: str) -> str:
    return INDEXED.get(source, "TRUE")
