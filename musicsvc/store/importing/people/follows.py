"""`import follows`: import follows of accounts from a file."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.store.engine import bulk, dialect
from musicsvc.store.importing.columns import Cells
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.people import accounts
from musicsvc.store.importing.people.accounts import Key
from musicsvc.store.importing.runner import Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import Counts
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Follow, User

FIELDS = ("follower", "followed")
LONGEST = 255
SELF_FOLLOW = "an account cannot follow itself"
TYPES = ("bigint", "bigint", "bigint", "bigint")
INSERT = """
    INSERT INTO follow (id, follower_id, followed_id, created_at) {rows}
    ON CONFLICT (follower_id, followed_id) DO NOTHING RETURNING id
"""


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
    fields = FIELDS
    required = FIELDS

    def load(self, user: int | None) -> None:
        """Do nothing: follows are nobody's."""

    def forget(self) -> None:
        """Do nothing: batches do not depend on each other."""

    def parse(self, record: Record, cells: dict[str, list[Any]]) -> FollowRow:
        row = Cells(cells)
        found = [row.text(name, LONGEST) for name in FIELDS]
        for name, text in zip(FIELDS, found, strict=True):
            row.refuse(name, "is missing", when=text is None)
        if row.faults:
            raise RefusedError("; ".join(f"{name} {row.faults[name]}" for name in FIELDS if name in row.faults))
        follower, followed = (text or "" for text in found)
        keys = accounts.get_key(follower), accounts.get_key(followed)
        if keys[0] == keys[1]:
            raise RefusedError(SELF_FOLLOW)
        return FollowRow(record.line, (follower, followed), keys)

    def write(self, batch: Sequence[FollowRow], scope: Scope) -> Outcome:
        names = [name for row in batch for name in row.names]
        people = accounts.resolve(names, create=self.options.create_missing, now=scope.now)
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
    for field, name, key in zip(FIELDS, row.names, row.keys, strict=True):
        if key in problems:
            fields.setdefault(problems[key], []).append(field)
            names.append(repr(name))
    reason = "; ".join(f"{' and '.join(some)}: {problem}" for problem, some in fields.items())
    return RefusedError(reason, names=tuple(names))


def _insert(pairs: Sequence[tuple[int, int]], scope: Scope) -> int:
    """Store the follows, pairs of follower and followed id. Return the number of new ones."""
    ids = bulk.ids(Follow, len(pairs))
    rows = [(follow_id, *pair, scope.now) for follow_id, pair in zip(ids, pairs, strict=True)]
    new = [follow_id for (follow_id,) in dialect.insert_returning(INSERT, TYPES, rows)]
    runs.made(scope.run, Follow, new)
    return len(new)
