"""`import follows`: import follows of accounts from a file, a few hundred rows per transaction."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.engine import bulk, dialect
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import values
from musicsvc.store.importing.batches import in_batches, read_cells, resume_hint
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.people import accounts
from musicsvc.store.importing.people.accounts import Key, ResolvedAccounts
from musicsvc.store.importing.summary import Counts, ImportSummary, Progress, Refusal
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Follow, User

FIELDS = ("follower", "followed")
LONGEST = 255
SELF_FOLLOW = "an account cannot follow itself"
PAIR = ("bigint", "bigint")
INSERT = """
    INSERT INTO follow (id, follower_id, followed_id, created_at) {rows}
    ON CONFLICT (follower_id, followed_id) DO NOTHING RETURNING follower_id, followed_id, id
"""
FIND = """
    WITH asked (follower, followed) AS ({rows})
    SELECT follow.follower_id, follow.followed_id FROM follow, asked
    WHERE follow.follower_id = asked.follower AND follow.followed_id = asked.followed
"""


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Import options. `pairs` map columns to fields (`column=field`). Cells with a text in `blanks` count as empty."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    create_missing: bool = False
    dry_run: bool = False


class FollowScope(NamedTuple):
    """Values for all rows of an import; `run` is the id of the import."""

    create_missing: bool
    dry_run: bool
    now: int
    run: int


class FollowRow(NamedTuple):
    """A valid row of the file. Accounts are named by e-mail address, or by their id in another service."""

    line: int
    follower: str
    followed: str


@dataclass(slots=True)
class DryRunState:
    """Accounts (id by key) and follows that a dry run would create.

    `accounts` also has the existing accounts that are found only by their exact e-mail.
    """

    accounts: dict[Key, int] = field(default_factory=dict)
    follows: set[tuple[int, int]] = field(default_factory=set)


class FollowOutcome(NamedTuple):
    people: ResolvedAccounts
    refused: list[Refusal]
    new: set[tuple[int, int]]
    accepted: int  # the rows that are not refused
    mentions: int  # of accounts


def run(store: Store, reader: Reader, options: FollowOptions, *, now: int, on_progress: Progress) -> ImportSummary:
    """Import the file and return a summary. Raises Failure for a damaged file. Rows before the damage stay imported."""
    columns = Columns(FIELDS, options.pairs, ())
    if reader.columns is not None:
        columns.check(reader.columns, FIELDS)
    unused = columns.unused(reader.columns or [])
    summary = ImportSummary(options.dry_run, unused, counts={kind: Counts() for kind in ("accounts", "follows")})
    unwritten = DryRunState(store.read(accounts.load_exact).result())
    with runs.recording(store, "follows", reader, summary, user=None, now=now) as run_id:
        scope = FollowScope(options.create_missing, options.dry_run, now, run_id)
        try:
            for records in in_batches(_parse(reader, columns, options.blanks, unwritten.accounts)):
                outcome = _import_batch(store, records, scope, unwritten, summary)
                summary.rows += len(records)
                summary.refused += outcome.refused
                summary.counts = summary.totals(_counts(outcome))
                on_progress(summary)
        except Failure as failure:
            raise Failure(failure.here + resume_hint(summary.rows, dry_run=options.dry_run)) from None
    return summary


def _parse(
    reader: Reader, columns: Columns, blanks: Sequence[str], known: Container[Key]
) -> Iterator[FollowRow | Refusal]:
    for record in reader:
        yield Refusal(record.line, record.fault) if record.fault is not None else _row(record, columns, blanks, known)


def _row(record: Record, columns: Columns, blanks: Sequence[str], known: Container[Key]) -> FollowRow | Refusal:
    held = read_cells(record, columns, blanks)
    found, faults = [], []
    for name in FIELDS:
        try:
            text = values.text(held.get(name, [None])[0], LONGEST)
        except ValueError as error:
            faults.append(f"{name} {error}")
            continue
        if text is None:
            faults.append(f"{name} is missing")
        else:
            found.append(text)
    if not faults and accounts.get_key(found[0], known) == accounts.get_key(found[1], known):
        faults = [SELF_FOLLOW]
    return Refusal(record.line, "; ".join(faults)) if faults else FollowRow(record.line, *found)


def _import_batch(
    store: Store,
    records: Sequence[FollowRow | Refusal],
    scope: FollowScope,
    unwritten: DryRunState,
    summary: ImportSummary,
) -> FollowOutcome:
    """Import a batch of rows in one transaction. A dry run adds accounts and follows to `unwritten` instead."""
    rows = [row for row in records if isinstance(row, FollowRow)]
    invalid = [row for row in records if isinstance(row, Refusal)]

    def unit() -> FollowOutcome:
        runs.begin_batch(scope.run)
        names = [name for row in rows for name in row[1:]]
        create, dry_run = scope.create_missing, scope.dry_run
        people = accounts.resolve(names, unwritten.accounts, create=create, dry_run=dry_run, now=scope.now)
        runs.made(scope.run, User, sorted({*people.created_ids.values()}))
        pairs, refused = _pairs(rows, people, unwritten.accounts)
        new = _unknown(pairs, unwritten) if dry_run else _insert(pairs, scope)
        mentions = sum(accounts.get_key(name, unwritten.accounts) in people.ids for name in names)
        outcome = FollowOutcome(people, sorted([*refused, *invalid]), new, len(rows) - len(refused), mentions)
        runs.record_counts(scope.run, summary.rows + len(records), summary.totals(_counts(outcome)))
        return outcome

    outcome = (store.read(unit) if scope.dry_run else store.write(unit)).result()
    if scope.dry_run:
        unwritten.accounts |= outcome.people.created_ids
        unwritten.follows |= outcome.new
    return outcome


def _pairs(
    rows: list[FollowRow], people: ResolvedAccounts, known: Container[Key]
) -> tuple[list[tuple[int, int]], list[Refusal]]:
    """Return the follows, as distinct pairs (follower id, followed id) in the order of the rows, and refused rows."""
    pairs: dict[tuple[int, int], None] = {}
    refused = []
    for row in rows:
        keys = [accounts.get_key(name, known) for name in row[1:]]
        faults = [
            (field_, name, people.problems[key])
            for field_, name, key in zip(FIELDS, row[1:], keys, strict=True)
            if key in people.problems
        ]
        if faults:
            refused.append(Refusal(row.line, _join(faults), tuple(repr(name) for _, name, _ in faults)))
        elif people.ids[keys[0]] == people.ids[keys[1]]:  # one account, named by e-mail and by id
            refused.append(Refusal(row.line, SELF_FOLLOW))
        else:
            pairs[people.ids[keys[0]], people.ids[keys[1]]] = None
    return list(pairs), refused


def _join(faults: Sequence[tuple[str, str, str]]) -> str:
    """Return the faults of a row, given as (field, value, problem), in one text that names each problem once."""
    problems = {
        problem: " and ".join(field_ for field_, _, other in faults if other == problem) for *_, problem in faults
    }
    return "; ".join(f"{fields}: {problem}" for problem, fields in problems.items())


def _insert(pairs: list[tuple[int, int]], scope: FollowScope) -> set[tuple[int, int]]:
    ids = bulk.ids(Follow, len(pairs))
    rows = [(follow_id, *pair, scope.now) for follow_id, pair in zip(ids, pairs, strict=True)]
    new = dialect.insert_returning(INSERT, ("bigint", *PAIR, "bigint"), rows)
    runs.made(scope.run, Follow, [follow_id for _, _, follow_id in new])
    return _as_pairs([pair for *pair, _ in new])


def _unknown(pairs: list[tuple[int, int]], unwritten: DryRunState) -> set[tuple[int, int]]:
    """Return the follows that are not stored, and that earlier batches of the dry run would not have created."""
    return set(pairs) - _as_pairs(dialect.insert_returning(FIND, PAIR, pairs)) - unwritten.follows


def _as_pairs(rows: Iterable[Sequence[Any]]) -> set[tuple[int, int]]:
    return {(follower, followed) for follower, followed in rows}


def _counts(outcome: FollowOutcome) -> dict[str, Counts]:
    """Return the counts of a batch by kind."""
    new, created = len(outcome.new), outcome.people.created
    return {
        "follows": Counts(new=new, repeated=outcome.accepted - new, refused=len(outcome.refused)),
        "accounts": Counts(new=created, repeated=outcome.mentions - created),
    }
