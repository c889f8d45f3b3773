"""The state while fixtures are loaded: the rows created or found so far, by their keys in the fixture files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peewee import Field, Model

from musicsvc.store.models import Artist, User

PREFIX = "fixture:"  # of external ids

Entry = dict[str, Any]
Entries = Mapping[str, Sequence[Entry]]  # by kind, such as `artist`


@dataclass(slots=True)
class FixtureSummary:
    """The numbers of created rows. `tokens` has the created API tokens by key in `accounts.toml`."""

    accounts: int = 0
    artists: int = 0
    albums: int = 0
    tracks: int = 0
    comments: int = 0
    playlists: int = 0
    invitations: int = 0
    follows: int = 0
    likes: int = 0
    reposts: int = 0
    collections: int = 0
    conversations: int = 0
    messages: int = 0
    devices: int = 0
    choices: int = 0
    tokens: dict[str, str] = field(default_factory=dict, repr=False)


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
