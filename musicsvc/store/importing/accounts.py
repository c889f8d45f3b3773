"""Accounts that rows name: by e-mail, or by the id that another service knows them by."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.accounts.users import NewUser
from musicsvc.store.engine import dialect
from musicsvc.store.models import User

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

PLACEHOLDER = "import.test"  # a domain that never receives mail
PLAIN_ID = re.compile(r"[a-z0-9]{1,60}")
Key = tuple[str, str]  # "email" and its normal form, "exact" and an e-mail as it is, or "id" and the external id


@dataclass(slots=True)
class Accounts:
    """Who the names are: ids by key, of how many made for it, and why others can be nobody."""

    ids: dict[Key, int]
    made: int = 0
    made_ids: dict[Key, int] = field(default_factory=dict)  # under every key by which they can be named from now on
    problems: dict[Key, str] = field(default_factory=dict)


def exact() -> dict[Key, int]:
    """Return the accounts that are found by their exact e-mail alone, because an older one has the normal form."""
    return {("exact", email): user_id for user_id, email in users.without_key().items()}


def key_of(name: str, known: Container[Key]) -> Key:
    """What two spellings of one account share; an e-mail that an import made up stands for the id in it.

    `known` holds the accounts of `exact`.
    """
    if ("exact", name) in known:
        return "exact", name
    if "@" not in name:
        return "id", name
    key = email_addresses.normalize(name)
    local, _, domain = key.rpartition("@")
    return ("id", local) if domain == PLACEHOLDER and PLAIN_ID.fullmatch(local) else ("email", key)


def resolve(names: Iterable[str], known: Mapping[Key, int], *, create: bool, dry_run: bool, now: int) -> Accounts:
    """The accounts of these names; those that are missing are made where `create` says so.

    `known` are those of `exact`, and those that a dry run has not written; it gives them ids below 0.
    """
    spelled: dict[Key, str] = {}
    for name in names:
        spelled.setdefault(key_of(name, known), name)
    found = Accounts({key: known[key] for key in spelled if key in known} | _find(list(spelled)))
    missing = {key: name for key, name in spelled.items() if key not in found.ids}
    if not create:
        found.problems = dict.fromkeys(missing, "no such account; --create-missing creates it")
        return found
    people = _to_make(missing, found)
    found.made = len(people)
    unwritten = range(-1 - len(known), -1 - len(known) - len(people), -1)
    ids = unwritten if dry_run else users.create_many(list(people.values()), now=now)
    for (key, new), user_id in zip(people.items(), ids, strict=True):
        found.ids[key] = found.made_ids[key] = found.made_ids["email", new.email_key] = user_id
    return found


def _find(keys: list[Key]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for kind, column in (("email", User.email_key), ("id", User.external_id)):
        for some in dialect.batches([value for key_kind, value in keys if key_kind == kind]):
            query = User.select(column, User.id).where(column.in_(some))
            found |= {(kind, value): user_id for value, user_id in query.tuples().iterator()}
    return found


def _to_make(missing: Mapping[Key, str], found: Accounts) -> dict[Key, NewUser]:
    """The accounts that can be made; why the others cannot is noted."""
    people = {key: _new(key, name) for key, name in missing.items()}
    taken = _find([("email", new.email_key) for (kind, _), new in people.items() if kind == "id"])
    for (kind, value), new in people.items():
        if ("email", new.email_key) in taken:
            found.problems[kind, value] = "cannot be created: the e-mail for this id belongs to an account"
        elif kind == "email" and (email_addresses.problem(new.email) or value.endswith(f"@{PLACEHOLDER}")):
            found.problems[kind, value] = "neither an account nor a valid e-mail address"
    return {key: new for key, new in people.items() if key not in found.problems}


def _new(key: Key, name: str) -> NewUser:
    """The account to be made: one known by an id alone has an e-mail that nobody reads."""
    kind, value = key
    if kind == "email":
        return NewUser(name, name.rpartition("@")[0][: users.NAME_LENGTH])
    local = value if PLAIN_ID.fullmatch(value) else f"id-{hashlib.sha256(value.encode()).hexdigest()[:32]}"
    return NewUser(f"{local}@{PLACEHOLDER}", value[: users.NAME_LENGTH], value)
