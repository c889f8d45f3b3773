"""`import follows`: import follows, and create the accounts that they name by e-mail or by an id elsewhere."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.accounts.users import NewUser
from musicsvc.store.engine import bulk
from musicsvc.store.importing import headings
from musicsvc.store.importing.cells import names
from musicsvc.store.importing.columns import Cells, Field
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.runner import Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Follow, User
from musicsvc.wording import LONGEST_NAME

PLACEHOLDER_DOMAIN = "import.test"  # never receives mail
PLAIN_ID = re.compile(r"[a-z0-9]{1,60}")
Key = tuple[str, str]  # ("email", normalized address) or ("id", external id)
FIELDS = ("follower", "followed")
SELF_FOLLOW = "an account cannot follow itself"


@dataclass(slots=True)
class ResolvedAccounts:
    """Ids of the accounts that were found or created, by key. `problems`: why an account is missing, by key."""

    ids: dict[Key, int]
    created: Sequence[int] = ()  # ids
    problems: dict[Key, str] = field(default_factory=dict)


def get_key(name: str) -> Key:
    """Return the key of the account with this `name`: an e-mail address, or an id in another service.

    All spellings of an address have the same key. A placeholder address that was generated for an id has the key of
    the id.
    """
    if "@" not in name:
        return "id", name
    key = email_addresses.normalize(name)
    local, _, domain = key.rpartition("@")
    return ("id", local) if domain == PLACEHOLDER_DOMAIN and PLAIN_ID.fullmatch(local) else ("email", key)


def resolve(rows: Iterable["FollowRow"], *, create: bool, now: int) -> ResolvedAccounts:
    """Find the accounts of rows. With `create`, create the missing ones, except those of rows with another problem."""
    rows = [*rows]
    spelled: dict[Key, str] = {}
    for row in rows:
        for key, spelling in zip(row.keys, row.names, strict=True):
            spelled.setdefault(key, spelling)
    found = ResolvedAccounts(_find(list(spelled)))
    missing = {key: spelling for key, spelling in spelled.items() if key not in found.ids}
    if not create:
        found.problems = dict.fromkeys(missing, "no such account; --create-missing creates it")
        return found
    creatable = _creatable(missing, found)
    sound = {key for row in rows if found.problems.keys().isdisjoint(row.keys) for key in row.keys}
    people = {key: new for key, new in creatable.items() if key in sound}
    found.created = users.create_many(list(people.values()), now=now)
    found.ids.update(zip(people, found.created, strict=True))
    return found


def _find(keys: list[Key]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for kind, column in (("email", User.email_key), ("id", User.external_id)):
        if wanted := [value for key_kind, value in keys if key_kind == kind]:
            query = User.select(column, User.id).where(column.in_(wanted))
            found |= {(kind, value): user_id for value, user_id in query.tuples().iterator()}
    return found


def _creatable(missing: Mapping[Key, str], found: ResolvedAccounts) -> dict[Key, NewUser]:
    """Return the missing accounts that can be created. For each other one, add the reason to `found.problems`."""
    people = {key: _new(key, spelling) for key, spelling in missing.items()}
    taken = _find([("email", new.email_key) for (kind, _), new in people.items() if kind == "id"])
    for (kind, value), new in people.items():
        if ("email", new.email_key) in taken:
            found.problems[kind, value] = "cannot be created: the e-mail for this id belongs to an account"
        elif kind == "email" and (email_addresses.problem(new.email) or value.endswith(f"@{PLACEHOLDER_DOMAIN}")):
            found.problems[kind, value] = "neither an account nor a valid e-mail address"
    return {key: new for key, new in people.items() if key not in found.problems}


def _new(key: Key, name: str) -> NewUser:
    """Return the account to create for a name. If the name is an id, the account gets a placeholder e-mail address."""
    kind, value = key
    if kind == "email":
        return NewUser(name, name.rpartition("@")[0][: users.NAME_LENGTH])
    local = value if PLAIN_ID.fullmatch(value) else f"id-{hashlib.sha256(value.encode()).hexdigest()[:32]}"
    return NewUser(f"{local}@{PLACEHOLDER_DOMAIN}", value[: users.NAME_LENGTH], value)


class FollowRow(NamedTuple):
    """A valid row of the file. Accounts are named by e-mail address, or by their id in another service."""

    line: int
    names: tuple[str, str]  # of the follower and the followed account
    keys: tuple[Key, Key]


class Follows(Kind[FollowRow]):
    """The import of follows."""

    name = "follows"
    counted = ("accounts", "follows")
    refused_as = "follows"
    fields = dict.fromkeys(FIELDS, Field(partial(names.name, longest=LONGEST_NAME), is_name=True))
    synonyms = headings.FOLLOWS
    required = dict.fromkeys(FIELDS, "")

    def parse(self, record: Record, cells: Cells) -> FollowRow:
        """Validate a row. Raises RefusedError if a name is missing, or if both are of one account."""
        follower, followed = (cells.values.get(name) or "" for name in FIELDS)
        cells.refuse("follower", "is missing", when=not follower)
        cells.refuse("followed", "is missing", when=not followed)
        if cells.faults:
            raise RefusedError(cells.reasons(FIELDS))
        keys = get_key(follower), get_key(followed)
        if keys[0] == keys[1]:
            raise RefusedError(SELF_FOLLOW)
        return FollowRow(record.line, (follower, followed), keys)

    def write(self, batch: Sequence[FollowRow], scope: Scope) -> Outcome:
        people = resolve(batch, create=self.options.create_missing, now=scope.now)
        runs.made(scope.run, User, people.created)
        outcome = Outcome()
        pairs: dict[tuple[int, int], None] = {}
        for place, row in enumerate(batch):
            follower, followed = (people.ids.get(key) for key in row.keys)
            if follower is None or followed is None:
                outcome.refused[place] = _unknown(row, people.problems)
            elif follower == followed:  # one account, named by e-mail and by id
                outcome.refused[place] = RefusedError(SELF_FOLLOW)
            else:
                pairs[follower, followed] = None
        new, accepted = _insert(list(pairs), scope), len(batch) - len(outcome.refused)
        mentions = sum(key in people.ids for row in batch for key in row.keys)
        created = len(people.created)
        outcome.counts = {
            "follows": Counts(new=new, repeated=accepted - new),
            "accounts": Counts(new=created, repeated=mentions - created),
        }
        return outcome


def _unknown(row: FollowRow, problems: Mapping[Key, str]) -> RefusedError:
    """Return why a row is refused that names unknown accounts, in one text that names each problem once."""
    fields: dict[str, list[str]] = {}
    names = []
    for column, name, key in zip(FIELDS, row.names, row.keys, strict=True):
        if key in problems:
            fields.setdefault(problems[key], []).append(column)
            names.append(repr(name))
    reason = "; ".join(f"{' and '.join(some)}: {problem}" for problem, some in fields.items())
    return RefusedError(reason, names=tuple(names))


def _insert(pairs: Sequence[tuple[int, int]], scope: Scope) -> int:
    """Store the follows, pairs of follower and followed id. Return the number of new ones."""
    ids = bulk.ids(Follow, len(pairs))
    rows = [(follow_id, *pair, scope.now) for follow_id, pair in zip(ids, pairs, strict=True)]
    new = [follow_id for follow_id, *_ in bulk.insert_new(Follow, ("id", *FIELDS, "created_at"), rows)]
    runs.made(scope.run, Follow, new)
    return len(new)
