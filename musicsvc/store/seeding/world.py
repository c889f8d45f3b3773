"""The state while fixtures are loaded: the rows created or found so far, by their keys in the fixture files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peewee import Field, Model

from musicsvc.store.models import Artist, User

PREFIX = "fixture:"  # of external ids
KINDS = (
    *("accounts", "artists", "albums", "tracks", "comments", "playlists", "invitations", "follows", "likes", "reposts"),
    *("collections", "conversations", "messages", "devices", "choices"),
)

Entry = dict[str, Any]
Entries = Mapping[str, Sequence[Entry]]  # by kind, such as `artist`


class FixtureSummary(Counter[str]):
    """The numbers of created rows by kind, and the created API tokens by key in `accounts.toml`."""

    def __init__(self, **created: int) -> None:
        super().__init__(dict.fromkeys(KINDS, 0) | created)
        self.tokens: dict[str, str] = {}


@dataclass(slots=True)
class World:
    """Accounts, artists, album ids and track ids by their keys in the fixture files, and numbers of created rows.

    `rights`: create accounts with tokens and their rights. `values`: fixed values of tokens, by key.
    """

    now: int
    rights: bool = True
    values: Mapping[str, str] = field(default_factory=dict)
    accounts: dict[str, User] = field(default_factory=dict)
    artists: dict[str, Artist] = field(default_factory=dict)
    albums: dict[str, int] = field(default_factory=dict)
    tracks: dict[str, int] = field(default_factory=dict)
    created: FixtureSummary = field(default_factory=FixtureSummary)


def columns(entry: Entry, table: type[Model]) -> Entry:
    """Return the values of `entry` whose names are columns of the table, without surrounding spaces."""
    values = {name: value for name, value in entry.items() if isinstance(getattr(table, name, None), Field)}
    return {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
