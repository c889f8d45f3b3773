"""`import follows`: a row says who follows whom, a few hundred in each unit; later rows are newer follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.engine import bulk, dialect
from musicsvc.store.importing import accounts, values
from musicsvc.store.importing.batches import cells, left_off, pieces, take_turn
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.summary import Counts, Refusal, Summary
from musicsvc.store.models import Follow

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.accounts import Accounts, Key
    from musicsvc.store.importing.readers import Reader, Record

FIELDS = ("follower", "followed")
LONGEST = 255
ITSELF = "an account cannot follow itself"
PAIR = ("bigint", "bigint")
INSERT = """
    INSERT INTO follow (id, follower_id, followed_id, created_at) {rows}
    ON CONFLICT (follower_id, followed_id) DO NOTHING RETURNING follower_id, followed_id
"""
FIND = """
    WITH asked (follower, followed) AS ({rows})
    SELECT follow.follower_id, follow.followed_id FROM follow, asked
    WHERE follow.follower_id = asked.follower AND follow.followed_id = asked.followed
"""


@dataclass(frozen=True, slots=True)
class Options:
    """How the file is read: `pairs` are `column=field`, `blanks` are texts that stand for an empty cell."""

    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    create_missing: bool = False
    dry_run: bool = False


class Row(NamedTuple):
    """One row, checked."""

    line: int
    follower: str
    followed: str


@dataclass(slots=True)
class Unwritten:
    """What a dry run would have made so far; `accounts` begins with those found by their exact e-mail."""

    accounts: dict[Key, int] = field(default_factory=dict)
    follows: set[tuple[int, int]] = field(default_factory=set)


class Outcome(NamedTuple):
    """What became of a piece of the file."""

    people: Accounts
    refused: list[Refusal]
    new: set[tuple[int, int]]
    rows: int
    mentions: int  # of accounts


def run(store: Store, reader: Reader, options: Options, *, now: int, told: Callable[[Summary], None]) -> Summary:
    """Import the file; `told` hears of every batch. What is refused is listed, the rest goes in.

    Raises Failure where the file breaks off; whole batches before that stay, and a second run goes on from there.
    """
    columns = Columns(FIELDS, options.pairs, ())
    if reader.columns is not None:
        columns.check(reader.columns, FIELDS)
    unused = columns.unused(reader.columns or [])
    summary = Summary(options.dry_run, unused, counts={kind: Counts() for kind in ("accounts", "follows")})
    unwritten = Unwritten(store.read(accounts.exact).result())
    try:
        for parsed in pieces(_parsed(reader, columns, options.blanks, unwritten.accounts)):
            outcome = _put(store, [row for row in parsed if isinstance(row, Row)], options, unwritten, now)
            refused = sorted([*outcome.refused, *(row for row in parsed if isinstance(row, Refusal))])
            _add(summary, outcome, refused, len(parsed))
            told(summary)
    except Failure as failure:
        raise Failure(failure.here + left_off(summary.rows, dry_run=options.dry_run)) from None
    return summary


def _parsed(reader: Reader, columns: Columns, blanks: Sequence[str], known: Container[Key]) -> Iterator[Row | Refusal]:
    for record in reader:
        yield Refusal(record.line, record.fault) if record.fault is not None else _row(record, columns, blanks, known)


def _row(record: Record, columns: Columns, blanks: Sequence[str], known: Container[Key]) -> Row | Refusal:
    held = cells(record, columns, blanks)
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
    if not faults and accounts.key_of(found[0], known) == accounts.key_of(found[1], known):
        faults = [ITSELF]
    return Refusal(record.line, "; ".join(faults)) if faults else Row(record.line, *found)


def _put(store: Store, piece: list[Row], options: Options, unwritten: Unwritten, now: int) -> Outcome:
    """The outcome of a unit, which may run twice and leaves `unwritten` as it is; then what a dry run must remember."""

    def unit() -> Outcome:
        if not options.dry_run:
            take_turn()
        names = [name for row in piece for name in row[1:]]
        create, dry_run = options.create_missing, options.dry_run
        people = accounts.resolve(names, unwritten.accounts, create=create, dry_run=dry_run, now=now)
        pairs, refused = _pairs(piece, people, unwritten.accounts)
        new = _unknown(pairs, unwritten) if dry_run else _insert(pairs, now)
        mentions = sum(accounts.key_of(name, unwritten.accounts) in people.ids for name in names)
        return Outcome(people, refused, new, len(piece), mentions)

    outcome = (store.read(unit) if options.dry_run else store.write(unit)).result()
    if options.dry_run:
        unwritten.accounts |= outcome.people.made_ids
        unwritten.follows |= outcome.new
    return outcome


def _pairs(piece: list[Row], people: Accounts, known: Container[Key]) -> tuple[list[tuple[int, int]], list[Refusal]]:
    """The follows that can be, each once and in the order of the rows, and the rows that cannot."""
    pairs: dict[tuple[int, int], None] = {}
    refused = []
    for row in piece:
        keys = [accounts.key_of(name, known) for name in row[1:]]
        faults = [
            (field_, name, people.problems[key])
            for field_, name, key in zip(FIELDS, row[1:], keys, strict=True)
            if key in people.problems
        ]
        if faults:
            refused.append(Refusal(row.line, _spelled(faults), tuple(repr(name) for _, name, _ in faults)))
        elif people.ids[keys[0]] == people.ids[keys[1]]:  # named by its e-mail and by its id
            refused.append(Refusal(row.line, ITSELF))
        else:
            pairs[people.ids[keys[0]], people.ids[keys[1]]] = None
    return list(pairs), refused


def _spelled(faults: Sequence[tuple[str, str, str]]) -> str:
    """Name the fields and what is wrong, once where it is the same for both."""
    problems = {
        problem: " and ".join(field_ for field_, _, other in faults if other == problem) for *_, problem in faults
    }
    return "; ".join(f"{fields}: {problem}" for problem, fields in problems.items())


def _insert(pairs: list[tuple[int, int]], now: int) -> set[tuple[int, int]]:
    """Write the follows that are not there yet; which these are."""
    ids = bulk.ids(Follow, len(pairs))
    rows = [(follow_id, *pair, now) for follow_id, pair in zip(ids, pairs, strict=True)]
    return _as_pairs(dialect.insert_returning(INSERT, ("bigint", *PAIR, "bigint"), rows))


def _unknown(pairs: list[tuple[int, int]], unwritten: Unwritten) -> set[tuple[int, int]]:
    """The follows that are not there yet, nor were seen by the dry run."""
    return set(pairs) - _as_pairs(dialect.insert_returning(FIND, PAIR, pairs)) - unwritten.follows


def _as_pairs(rows: list[tuple[Any, ...]]) -> set[tuple[int, int]]:
    return {(follower, followed) for follower, followed in rows}


def _add(summary: Summary, outcome: Outcome, refused: list[Refusal], rows: int) -> None:
    summary.rows += rows
    summary.refused += refused
    follows = Counts(new=len(outcome.new), refused=len(refused))
    follows.repeated = outcome.rows - len(outcome.refused) - follows.new
    summary.counts["follows"].add(follows)
    made = outcome.people.made
    summary.counts["accounts"].add(Counts(new=made, repeated=outcome.mentions - made))
