"""Search for accounts by display name, in an index of normalized names."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from musicsvc.store.engine.name_index import ACCOUNTS
from musicsvc.store.engine.name_keys import folded_key
from musicsvc.store.engine.sql import batches, compiled
from musicsvc.store.models import User

Row = TypeVar("Row")


class UserSummary(NamedTuple):
    """The columns of an account that all users may see. `avatar` is None if the service generates the picture."""

    id: int
    display_name: str
    avatar: str | None


SUMMARY = (User.id, User.display_name, User.avatar)


def find(query: str, limit: int) -> list[UserSummary]:
    """Return up to `limit` accounts whose display names contain `query`, best matches first."""
    chosen = ACCOUNTS.find(query, limit)
    found = {row[0]: UserSummary(*row) for row in _summaries(chosen)}
    return [found[user_id] for user_id in chosen if user_id in found]


@compiled
def _summaries(ids: Sequence[int]) -> Any:
    return User.select(*SUMMARY).where(User.id.in_(ids), User.suspended_at.is_null())


def add(people: Iterable[tuple[int, str]]) -> None:
    """Add new accounts, given as (id, display name) pairs, to the search index."""
    ACCOUNTS.add(people)


def remove(user_id: int, display_name: str) -> None:
    """Remove an account from the search index, if the index contains the account."""
    ACCOUNTS.remove([(user_id, display_name)])


def newest(
    rows: Iterable[Row], limit: int | None, text: str | None, texts: Callable[[Row], Iterable[str | None]]
) -> Sequence[Row]:
    """Return the newest `limit` rows that contain `text`, oldest first. The argument `rows` must be newest first.

    `texts(row)` returns the strings of a row in which `text` is searched, ignoring case and accents.
    """
    if text:
        wanted = folded_key(text)
        rows = (row for row in rows if any(wanted in folded_key(part) for part in texts(row) if part))
    return tuple(islice(rows, limit))[::-1]


def newest_models(query: Any, columns: Sequence[Any], limit: int | None, text: str | None) -> Sequence[Any]:
    """Return the newest `limit` models of a query that contain `text` in one of `columns`, oldest first.

    The first column must be the id. Models are created for matches only, which saves two thirds of the time.
    """
    key = columns[0]
    newest_first = query.order_by(key.desc())
    if not text:
        return tuple(newest_first.limit(limit))[::-1]
    rows = newest_first.select(*columns).tuples().iterator()
    ids = [row[0] for row in newest(rows, limit, text, lambda row: row[1:])]
    return tuple(model for some in batches(ids) for model in query.where(key.in_(some)).order_by(key))
