"""Find out what an undo of an import would delete, restore and keep, without changing anything."""

from collections import Counter
from dataclasses import dataclass, field

from peewee import Model

from musicsvc.store.engine.sql import fetch
from musicsvc.store.importing.undoing import made_rows, undo
from musicsvc.store.importing.undoing.made_rows import AT_ONCE, Going, table_name
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.models import Album, Track

PLAYS = "SELECT track_id, count(*) FROM play WHERE slot >= ? AND slot <= ? AND import_id = ? GROUP BY track_id"
ITEMS = "SELECT item FROM import_item WHERE run_id = ? AND kind = ? AND {of} ORDER BY item"
MADE = ITEMS.format(of="changes IS NULL")
CHANGED = ITEMS.format(of="changes <> '{}'")


@dataclass(slots=True)
class UndoPreview:
    """The rows that an undo would delete and restore, by table, and the ids of those it would keep, by reason."""

    run: RunRow
    plays: int = 0
    deleted: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    kept: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # by table and reason


def build(run: int) -> UndoPreview:
    """Return what an undo of the import would do now. Raises NotFound, or Failure if the import was undone."""
    found = UndoPreview(undo.get(run))
    going = Going()
    for first, last in fetch(undo.SPAN, run):
        if first is not None:
            going.plays = Counter(dict(fetch(PLAYS, first, last, run)))
    found.plays = going.plays.total()
    changing: tuple[type[Model], ...] = (Track, Album)
    for table in changing:
        changed = {item for (item,) in fetch(CHANGED, run, table_name(table))}
        found.restored[table_name(table)] = len(changed)
        going.rows[table] = changed
    for table in (*undo.MADE_BEFORE, *undo.MADE_AFTER):
        _add(found, table, going)
    return found


def _add(found: UndoPreview, table: type[Model], going: Going) -> None:
    """Add the rows of a table that the import created to those that an undo deletes or keeps."""
    name = table_name(table)
    made = [item for (item,) in fetch(MADE, found.run.id, name)]
    for start in range(0, len(made), AT_ONCE):
        ids = made_rows.existing(table, made[start : start + AT_ONCE])
        kept = made_rows.reasons(table, ids, found.run.id, going)
        for item, reason in kept.items():
            found.kept.setdefault((name, reason), []).append(item)
        going.rows.setdefault(table, set()).update(item for item in ids if item not in kept)
        found.deleted[name] += len(ids) - len(kept)
