"""`import playlists`: a row puts a track into a playlist, a few hundred in each unit, in the order of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.importing import lookup, playlist_rows, rows
from musicsvc.store.importing.batches import cells, left_off, pieces, take_turn
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.lookup import Mention
from musicsvc.store.importing.playlist_rows import Memory, Named, Pair, Scope
from musicsvc.store.importing.summary import Counts, Refusal, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from musicsvc.store.engine.store import Store
    from musicsvc.store.importing.readers import Reader, Record

LONGEST_NAME = 250  # as by API
NO_EXTERNAL_ID = "no track has this external_id; import the catalog first"
NO_TRACK = "no such track; import the catalog first"


@dataclass(frozen=True, slots=True)
class Options:
    """How the file is read: `pairs` are `column=field`, `blanks` are texts that stand for an empty cell.

    `manager` is the e-mail of the account that owns the playlists; `public` is for those that are made.
    """

    manager: str
    pairs: Sequence[str] = ()
    blanks: Sequence[str] = ()
    public: bool = False
    dry_run: bool = False


class Row(NamedTuple):
    """One row, checked."""

    line: int
    external_id: str | None  # of the playlist
    name: str
    mention: Mention


class Outcome(NamedTuple):
    """What became of a piece of the file."""

    refused: list[Refusal]
    pairs: list[Pair]  # of each row that went in
    made: list[Named]
    new: set[Pair]


def run(store: Store, reader: Reader, options: Options, *, now: int, told: Callable[[Summary], None]) -> Summary:
    """Import the file; `told` hears of every batch. What is refused is listed, the rest goes in.

    Raises Failure where the file breaks off; whole batches before that stay, and a second run goes on from there.
    """
    columns = Columns(rows.FIELDS, options.pairs, rows.SEVERAL)  # a catalog's columns do no harm
    if reader.columns is not None:
        named = any(columns.field(name) == "external_id" for name in reader.columns)
        columns.check(reader.columns, ("playlist",) if named else ("playlist", *rows.REQUIRED))
    unused = columns.unused(reader.columns or [])
    summary = Summary(options.dry_run, unused, counts={kind: Counts() for kind in ("playlists", "entries")})
    owner = store.read(lambda: int(users.by_email(options.manager).id)).result()
    scope, memory = Scope(owner, options.public, now, options.dry_run), Memory()
    try:
        for parsed in pieces(_parsed(reader, columns, options.blanks)):
            outcome = _put(store, [row for row in parsed if isinstance(row, Row)], scope, memory)
            refused = sorted([*outcome.refused, *(row for row in parsed if isinstance(row, Refusal))])
            _add(summary, outcome, refused, memory)
            summary.rows += len(parsed)
            told(summary)
    except Failure as failure:
        raise Failure(failure.here + left_off(summary.rows, dry_run=options.dry_run)) from None
    return summary


def _parsed(reader: Reader, columns: Columns, blanks: Sequence[str]) -> Iterator[Row | Refusal]:
    for record in reader:
        yield Refusal(record.line, record.fault) if record.fault is not None else _row(record, columns, blanks)


def _row(record: Record, columns: Columns, blanks: Sequence[str]) -> Row | Refusal:
    row = rows.Cells(cells(record, columns, blanks))
    name, external_id = row.text("playlist", LONGEST_NAME), row.text("playlist_external_id")
    row.refuse("playlist", "is missing", when=name is None)
    mention = _mention(row)
    if row.faults:
        return Refusal(record.line, _spelled(row.faults))
    return Row(record.line, external_id, name or "", mention)


def _mention(row: rows.Cells) -> Mention:
    """The track that the cells name; those of its names are not looked at where there is an external id."""
    external_id = row.text("external_id")
    if external_id is not None or "external_id" in row.faults:
        return Mention(external_id)
    artists = tuple(row.several("artist", rows.NAME_LENGTH))
    track, album = row.text("track"), row.text("album")
    row.refuse("track", "is missing", when=track is None)
    row.refuse("artist", "is missing", when=not artists)
    return Mention(None, artists, track, album)


def _spelled(faults: Mapping[str, Any]) -> str:
    return "; ".join(f"{field} {reason}" for field, reason in faults.items())


def _put(store: Store, piece: list[Row], scope: Scope, memory: Memory) -> Outcome:
    """The outcome of a unit, which may run twice and leaves the memory as it is; then what must be remembered."""

    def unit() -> Outcome:
        if not scope.dry_run:
            take_turn()
        tracks = lookup.find([row.mention for row in piece], manager=scope.owner)
        found = [(row, track) for row, track in zip(piece, tracks, strict=True) if track is not None]
        refused = [_unknown(row) for row, track in zip(piece, tracks, strict=True) if track is None]
        ids, made = playlist_rows.place([(row.external_id, row.name) for row, _ in found], scope, memory)
        pairs = [(playlist, track) for playlist, (_, track) in zip(ids, found, strict=True)]
        return Outcome(refused, pairs, made, playlist_rows.append(pairs, scope, memory))

    outcome = (store.read(unit) if scope.dry_run else store.write(unit)).result()
    if scope.dry_run:
        memory.unwritten += outcome.made
        memory.entries |= outcome.new
    return outcome


def _unknown(row: Row) -> Refusal:
    named = row.mention
    if named.external_id is not None:
        return Refusal(row.line, NO_EXTERNAL_ID, (repr(named.external_id),))
    return Refusal(row.line, NO_TRACK, (f"{named.track!r} by {', '.join(named.artists)}",))


def _add(summary: Summary, outcome: Outcome, refused: list[Refusal], memory: Memory) -> None:
    summary.refused += refused
    new = len(outcome.new)
    summary.counts["entries"].add(Counts(new=new, repeated=len(outcome.pairs) - new, refused=len(refused)))
    made = {playlist.id for playlist in outcome.made}
    changed = {playlist for playlist, _ in outcome.new} - made - memory.counted
    repeated = len(outcome.pairs) - len(made) - len(changed)
    summary.counts["playlists"].add(Counts(new=len(made), changed=len(changed), repeated=repeated))
    memory.counted |= made | changed
