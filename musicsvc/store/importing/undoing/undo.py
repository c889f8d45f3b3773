"""`import undo`: delete the rows that an import created and restore those it changed, some hundreds per transaction.

If an undo is killed, the next undo of the import continues it, because each transaction also deletes the records of
the rows that it has undone.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from musicsvc.clock import DAY, isoformat
from musicsvc.errors import Failure
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import made_rows, restoring, runs
from musicsvc.store.importing.undoing.made_rows import Step
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.models import (
    Album,
    Artist,
    Follow,
    Genre,
    ImportItem,
    ImportRun,
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
MADE_AFTER = (Track, Album, Artist, Genre, Tag)
SPAN = "SELECT first_slot, last_slot FROM import_run WHERE id = ?"
DAYS = f"""
    SELECT DISTINCT slot / {SLOTS_PER_DAY} FROM play WHERE slot >= ? AND slot <= ? AND import_id = ? ORDER BY 1
"""  # noqa: S608 - a constant
ALL_IDS = 1 << 62  # more than any id


@dataclass(slots=True)
class UndoSummary:
    """The result of an undo: numbers of undone rows by table, and ids of rows that were kept by (table, reason)."""

    run: RunRow
    plays: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    pruned: bool = False  # some of the plays are not kept one by one any more


def undo(store: Store, run: int, *, now: int, on_progress: OnProgress, actor: Actor = "cli") -> UndoSummary:
    """Undo the import. Rows that something else refers to are kept and reported; a later undo tries them again.

    Raises NotFound for an unknown import, Failure for one that was undone.
    """
    total = store.write(partial(_begin, run, now, actor)).result()
    summary = UndoSummary(store.read(partial(runs.get, run)).result())
    _withdraw_plays(store, run, summary, lambda: on_progress(_done(summary), total))
    steps: tuple[Step, ...] = (
        *(partial(made_rows.take_back, table, now, actor) for table in MADE_BEFORE),
        restoring.restore_tracks,
        restoring.restore_albums,
        *(partial(made_rows.take_back, table, now, actor) for table in MADE_AFTER),
    )
    for step in steps:
        _take_back(store, run, step, summary, lambda: on_progress(_done(summary), total))
    store.write(partial(_end, run, summary, now, actor)).result()
    summary.run = store.read(partial(runs.get, run)).result()
    return summary


def get(run: int) -> RunRow:
    """Return an import that can be undone. Raises NotFound for an unknown import, Failure for one that was undone."""
    found = runs.get(run)
    if found.state == "undone":
        raise Failure(f"Import {run} was undone on {isoformat(found.undone_at or 0)[:10]} already.")
    return found


def _done(summary: UndoSummary) -> int:
    return summary.plays + summary.counts.total()


def _begin(run: int, now: int, actor: Actor) -> int:
    """Mark the import as being undone, which stops it if it runs. Return about how many rows it created or changed."""
    lock_imports()
    found = get(run)
    ImportRun.update(state="undoing").where(ImportRun.id == run).execute()
    runs.log(run, "import.undo_started", now=now, actor=actor)
    items: int = ImportItem.select().where(ImportItem.run == run).count()
    return items + found.counts.get("plays", {}).get("new", 0)


def _withdraw_plays(store: Store, run: int, summary: UndoSummary, progress: Callable[[], None]) -> None:
    ((first, last),) = store.read(partial(fetch, SPAN, run)).result()
    if first is None:
        return
    summary.pruned = first * SLOT < store.read(blocks.progress).result().kept_from * DAY
    chosen = Selection("import_id = ?", (run,))
    days: Sequence[int] = [day for (day,) in store.read(partial(fetch, DAYS, first, last, run)).result()]
    while days:
        done = store.write(partial(withdrawal.withdraw, chosen, days)).result()
        days = done.days
        summary.plays += done.plays
        progress()


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
