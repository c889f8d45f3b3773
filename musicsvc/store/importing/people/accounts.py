"""Find or create the accounts that imported rows name, by e-mail address or by id in another service."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.accounts.users import NewUser
from musicsvc.store.engine import dialect
from musicsvc.store.models import User

PLACEHOLDER_DOMAIN = "import.test"  # never receives mail
PLAIN_ID = re.compile(r"[a-z0-9]{1,60}")
Key = tuple[str, str]  # ("email", normalized address) or ("id", external id)


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


def resolve(names: Iterable[str], *, create: bool, now: int) -> ResolvedAccounts:
    """Find accounts by name: an e-mail address, or an id in another service. With `create`, create missing ones."""
    spelled: dict[Key, str] = {}
    for name in names:
        spelled.setdefault(get_key(name), name)
    found = ResolvedAccounts(_find(list(spelled)))
    missing = {key: name for key, name in spelled.items() if key not in found.ids}
    if not create:
        found.problems = dict.fromkeys(missing, "no such account; --create-missing creates it")
        return found
    people = _creatable(missing, found)
    found.created = users.create_many(list(people.values()), now=now)
    found.ids.update(zip(people, found.created, strict=True))
    return found


def _find(keys: list[Key]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for kind, column in (("email", User.email_key), ("id", User.external_id)):
        for some in dialect.batches([value for key_kind, value in keys if key_kind == kind]):
            query = User.select(column, User.id).where(column.in_(some))
            found |= {(kind, value): user_id for value, user_id in query.tuples().iterator()}
    return found


def _creatable(missing: Mapping[Key, str], found: ResolvedAccounts) -> dict[Key, NewUser]:
    """Return the missing accounts that can be created. For each other one, add the reason to `found.problems`."""
    people = {key: _new(key, name) for key, name in missing.items()}
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
