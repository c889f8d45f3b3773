"""Search for accounts by display name, in an index of normalized names.

The index marks the beginning of each name and word with special characters. Index keys sort by length of the name,
then by account id, so that the best matches of a search have the lowest keys.
"""

from __future__ import annotations

import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from musicsvc.store.accounts.user_summary import COLUMNS, UserSummary
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.compiled import compiled
from musicsvc.store.engine.dialect import batches, is_sqlite
from musicsvc.store.engine.sql import fetch, run
from musicsvc.store.models import User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Row = TypeVar("Row")
# Two characters each, so that a mark and one letter make a trigram. No normalized name contains them: `fold` turns
# both into a and o.
NAME_BEGINS, WORD_BEGINS = "ªª", "ºº"
TRIGRAM = 3
ID_BITS, LONGEST = 53, 1023
BATCH = 10_000
SHORTEST = 3000  # names that PostgreSQL scans before it uses the trigram index
LONGEST_START = 5  # the longest beginning of a name, with its mark, for which PostgreSQL has an index
IGNORED = {"Cc", "Cf", "Me"}
PLAIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "\u0131": "i", "æ": "ae", "œ": "oe"})


def fold(text: str) -> str:
    """Return the text in lower case, without accents and invisible characters, and with single spaces."""
    text = " ".join(text.split())
    if text.isascii() and text.isprintable():
        return text.lower()
    for _ in range(2):  # case folding may yield characters to decompose again
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not _ignored(char)).casefold()
    return " ".join(unicodedata.normalize("NFC", text.translate(PLAIN)).split())


def _ignored(char: str) -> bool:
    """Return True for characters that `fold` drops: accents and invisible characters, but not Indic vowel signs."""
    variant = "\ufe00" <= char <= "\ufe0f"
    return variant or bool(unicodedata.combining(char)) or unicodedata.category(char) in IGNORED


def find(query: str, limit: int) -> list[UserSummary]:
    """Return up to `limit` accounts whose display names contain `query`, best matches first.

    Names that begin with `query` come first, then names with a word that begins with `query`. All other names follow
    only if `query` has three characters or more. Within each of these groups, shorter names come first.
    """
    ids: dict[int, None] = {}
    for pattern in _patterns(fold(query)):
        if len(ids) < limit:
            # The results of better patterns match this one too, so request as many more.
            ids |= dict.fromkeys(key & ((1 << ID_BITS) - 1) for key in _keys(pattern, limit + len(ids)))
    chosen = list(ids)[:limit]
    found = {row[0]: UserSummary(*row) for row in _summaries(chosen)} if chosen else {}
    return [found[user_id] for user_id in chosen if user_id in found]


@compiled
def _summaries(ids: Sequence[int]) -> Any:
    return User.select(*COLUMNS).where(User.id.in_(ids), User.suspended_at.is_null())


def _patterns(folded: str) -> list[str]:
    """Return the strings to search for in the index: at the start of a name, at the start of a word, then anywhere."""
    if not folded:
        return []
    marked = _marked(folded)
    anywhere = [marked] if len(folded) >= TRIGRAM else []
    return [NAME_BEGINS + marked, WORD_BEGINS + marked, *anywhere]


def _marked(folded: str) -> str:
    """Return the text with `WORD_BEGINS` before each word, except before a word at the very beginning."""
    before = [True, *(char.isalnum() for char in folded)]
    return "".join(
        WORD_BEGINS + char if char.isalnum() and not within else char
        for char, within in zip(folded, before, strict=False)
    )


def _keys(pattern: str, limit: int) -> Sequence[int]:
    """Return the lowest `limit` index keys of names that contain the pattern. Lower keys are better matches."""
    if is_sqlite():
        phrase = '"' + pattern.replace('"', '""') + '"'
        sql = "SELECT rowid FROM account_search WHERE account_search MATCH ? ORDER BY rowid LIMIT ?"
        return _first_column(sql, (phrase, limit))
    if pattern.startswith(NAME_BEGINS) and len(pattern) <= LONGEST_START:
        sql = f"SELECT key FROM account_search WHERE left(name, {len(pattern)}) = ? ORDER BY key LIMIT ?"  # noqa: S608 - an integer
        return _first_column(sql, (pattern, limit))
    return _keys_by_trigrams(pattern, limit)


def _keys_by_trigrams(pattern: str, limit: int) -> Sequence[int]:
    """Do the same as `_keys` on PostgreSQL: search the shortest names, then all names with the trigram index."""
    like = "%" + pattern.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"
    sql = (
        "WITH shortest AS MATERIALIZED (SELECT key, name FROM account_search ORDER BY key LIMIT ?)"
        " SELECT key FROM shortest WHERE name LIKE ? ORDER BY key LIMIT ?"
    )
    # Two queries, because a single one takes a second for a pattern that no name contains.
    found = _first_column(sql, (SHORTEST, like, limit))
    if len(found) < limit:
        sql = "SELECT key FROM account_search WHERE name LIKE ? ORDER BY key + 0 LIMIT ?"
        found = _first_column(sql, (like, limit))
    return found


def _first_column(sql: str, values: tuple[Any, ...]) -> Sequence[int]:
    return [row[0] for row in fetch(sql, *values)]


def add(people: Iterable[tuple[int, str]]) -> None:
    """Add accounts, given as (id, display name) pairs, to the search index, which must not contain them yet."""
    folded = [(user_id, fold(name)) for user_id, name in people]
    rows = [(_key(user_id, name), NAME_BEGINS + _marked(name)) for user_id, name in folded if name]
    connection: Any = current().connection()
    if is_sqlite():
        connection.executemany("INSERT INTO account_search (rowid, name) VALUES (?, ?)", rows)
        return
    with connection.cursor() as cursor, cursor.copy("COPY account_search (key, name) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def remove(user_id: int, display_name: str) -> None:
    """Remove an account from the search index, if the index contains the account."""
    key = "rowid" if is_sqlite() else "key"
    sql = f"DELETE FROM account_search WHERE {key} = ?"  # noqa: S608 - a constant column name
    run(sql, _key(user_id, fold(display_name)))


def rebuild() -> None:
    run("DELETE FROM account_search")
    last = 0
    while people := _after(last):
        add(people)
        last = people[-1][0]


def _after(last: int) -> list[tuple[int, str]]:
    query = User.select(User.id, User.display_name).where(User.id > last, User.suspended_at.is_null())
    return list(query.order_by(User.id).limit(BATCH).tuples().iterator())


def _key(user_id: int, folded: str) -> int:
    return min(len(folded), LONGEST) << ID_BITS | user_id


def newest(
    rows: Iterable[Row], limit: int | None, text: str | None, texts: Callable[[Row], Iterable[str | None]]
) -> Sequence[Row]:
    """Return the newest `limit` rows that contain `text`, oldest first. The argument `rows` must be newest first.

    `texts(row)` returns the strings of a row in which `text` is searched, ignoring case and accents.
    """
    if text:
        wanted = fold(text)
        rows = (row for row in rows if any(wanted in fold(part) for part in texts(row) if part))
    return tuple(islice(rows, limit))[::-1]


def newest_models(query: Any, columns: Sequence[Any], limit: int | None, text: str | None) -> Sequence[Any]:
    """Return the newest `limit` models of a query that contain `text` in one of `columns`, oldest first.

    The first of the columns is the id. Only matches become models, which takes a third of the time.
    """
    key = columns[0]
    newest_first = query.order_by(key.desc())
    if not text:
        return tuple(newest_first.limit(limit))[::-1]
    rows = newest_first.select(*columns).tuples().iterator()
    ids = [row[0] for row in newest(rows, limit, text, lambda row: row[1:])]
    return tuple(model for some in batches(ids) for model in query.where(key.in_(some)).order_by(key))
