"""`import undo`: delete the rows that an import created and restore those it changed, some hundreds per transaction.

If an undo is killed, the next undo of the import continues it, because each transaction also deletes the records of
the rows that it has undone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from peewee import SQL, Model, fn

from musicsvc.clock import DAY, isoformat
from musicsvc.errors import Failure
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.engine.sql import batches
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import made_rows, restoring, runs
from musicsvc.store.importing.undoing.made_rows import Going, Step
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.models import (
    Album,
    Artist,
    Follow,
    Genre,
    ImportItem,
    ImportRun,
    Play,
    Playlist,
    PlaylistTrack,
    Tag,
    Track,
    User,
)
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY
from musicsvc.store.plays.rollups import blocks, withdrawal
from musicsvc.store.plays.rollups.withdrawal import Selection
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

OnProgress = Callable[[int, int], None]

# Each after the tables whose rows refer to its rows. Changes of tracks and albums come before the rows they refer to.
MADE_BEFORE = (PlaylistTrack, Playlist, Follow, User)
CHANGED: tuple[type[Model], ...] = (Track, Album)
MADE_AFTER = (Track, Album, Artist, Genre, Tag)
ALL_IDS = 1 << 62  # more than any id


@dataclass(slots=True)
class UndoSummary:
    """The result of an undo: numbers of undone rows by table, and ids of rows that were kept by (table, reason)."""

    run: RunRow
    plays: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    pruned: bool = False  # some of the plays are not kept one by one any more

    @property
    def rows(self) -> int:
        """The number of undone rows."""
        return self.plays + self.counts.total()


@dataclass(slots=True)
class UndoPreview:
    """The rows that an undo would delete and restore, by table, and the ids of those it would keep, by reason."""

    run: RunRow
    plays: int = 0
    deleted: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    kept: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # by table and reason


def preview(run: int) -> UndoPreview:
    """Return what an undo of the import would do now. Raises NotFound, or Failure if the import was undone."""
    found, going = UndoPreview(get(run)), Going()
    if (span := _span(run)) is not None:
        plays = Play.select(Play.track, fn.count(SQL("*"))).group_by(Play.track)
        plays = plays.where(Play.slot.between(*span), Play.import_id == run)
        going.plays = Counter(dict(plays.tuples().iterator()))
    found.plays = going.plays.total()
    for table in CHANGED:
        changed = _items(run, table, ImportItem.changes != "{}")
        found.restored[runs.table_name(table)] = len(changed)
        going.rows[table] = {*changed}
    for table in (*MADE_BEFORE, *MADE_AFTER):
        _add(found, table, going)
    return found


def _add(found: UndoPreview, table: type[Model], going: Going) -> None:
    """Add the rows of a table that the import created to those that an undo deletes or keeps."""
    name, made = runs.table_name(table), _items(found.run.id, table, ImportItem.changes.is_null())
    for some in batches(made, made_rows.AT_ONCE):
        ids = made_rows.existing(table, some)
        kept = made_rows.reasons(table, ids, found.run.id, going)
        for item, reason in kept.items():
            found.kept.setdefault((name, reason), []).append(item)
        going.rows.setdefault(table, set()).update(item for item in ids if item not in kept)
        found.deleted[name] += len(ids) - len(kept)


def _items(run: int, table: type[Model], condition: Any) -> list[int]:
    return [item for (item,) in runs.items(run, table, condition).order_by(ImportItem.item).tuples().iterator()]


def undo(store: Store, run: int, *, now: int, on_progress: OnProgress, actor: Actor = "cli") -> UndoSummary:
    """Undo the import. Rows that something else refers to are kept and reported; a later undo tries them again.

    Raises NotFound for an unknown import, Failure for one that was undone.
    """
    total = store.write(partial(_begin, run, now, actor)).result()
    summary = UndoSummary(store.read(partial(runs.get, run)).result())
    _withdraw_plays(store, run, summary, lambda: on_progress(summary.rows, total))
    steps: tuple[Step, ...] = (
        *(partial(made_rows.take_back, table, now, actor) for table in MADE_BEFORE),
        restoring.restore_tracks,
        restoring.restore_albums,
        *(partial(made_rows.take_back, table, now, actor) for table in MADE_AFTER),
    )
    for step in steps:
        _take_back(store, run, step, summary, lambda: on_progress(summary.rows, total))
    store.write(partial(_end, run, summary, now, actor)).result()
    summary.run = store.read(partial(runs.get, run)).result()
    return summary


def get(run: int) -> RunRow:
    """Return an import that can be undone. Raises NotFound for an unknown import, Failure for one that was undone."""
    found = runs.get(run)
    if found.state == "undone":
        raise Failure(f"Import {run} was undone on {isoformat(found.undone_at or 0)[:10]} already.")
    return found


def _begin(run: int, now: int, actor: Actor) -> int:
    """Mark the import as being undone, which stops it if it runs. Return about how many rows it created or changed."""
    lock_imports()
    found = get(run)
    ImportRun.update(state="undoing").where(ImportRun.id == run).execute()
    runs.log(run, "import.undo_started", now=now, actor=actor)
    items: int = ImportItem.select().where(ImportItem.run == run).count()
    return items + found.counts.get("plays", {}).get("new", 0)


def _withdraw_plays(store: Store, run: int, summary: UndoSummary, progress: Callable[[], None]) -> None:
    if (span := store.read(partial(_span, run)).result()) is None:
        return
    summary.pruned = span[0] * SLOT < store.read(blocks.progress).result().kept_from * DAY
    chosen = Selection("import_id = ?", (run,))
    days: Sequence[int] = store.read(partial(_days, run, *span)).result()
    while days:
        done = store.write(partial(withdrawal.withdraw, chosen, days)).result()
        days = done.days
        summary.plays += done.plays
        progress()


def _span(run: int) -> tuple[int, int] | None:
    """Return the first and the last slot with plays of the import, if it has any."""
    row = ImportRun.get_by_id(run)
    return None if row.first_slot is None or row.last_slot is None else (row.first_slot, row.last_slot)


def _days(run: int, first: int, last: int) -> list[int]:
    day = Play.slot / SLOTS_PER_DAY
    query = Play.select(day).distinct().where(Play.slot.between(first, last), Play.import_id == run)
    return sorted(each for (each,) in query.tuples().iterator())


def _take_back(store: Store, run: int, step: Step, summary: UndoSummary, progress: Callable[[], None]) -> None:
    below = ALL_IDS
    while (taken := store.write(partial(step, run, below)).result()) is not None:
        below = taken.lowest
        summary.counts[taken.table] += taken.restored
        for item, reason in taken.kept.items():
            summary.kept.setdefault((taken.table, reason), []).append(item)
        progress()


def _end(run: int, summary: UndoSummary, now: int, actor: Actor) -> None:
    restoring.forget_earlier(run)
    left = ImportItem.select().where(ImportItem.run == run).exists()
    state = "partly" if left else "undone"
    ImportRun.update(state=state, undone_at=now).where(ImportRun.id == run).execute()
    rows, kept = quantity(summary.counts.total(), "other row"), sum(map(len, summary.kept.values()))
    counts = f"{quantity(summary.plays, 'play')} and {rows} taken back, {kept:,} kept"
    runs.log(run, "import.undone", counts, now=now, actor=actor)
