"""A small world, imports into it, and their undo."""

from collections.abc import Callable
from typing import Any

from musicsvc.clock import SECOND
from musicsvc.store import models
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.undoing import restoring, undo
from musicsvc.store.importing.undoing.undo import UndoSummary
from musicsvc.store.models import (
    ImportItem,
    ImportRun,
    ListBlock,
    Listener,
    PlayCount,
    PlayProgress,
    SecurityEvent,
)
from musicsvc.store.plays import verify
from musicsvc.store.plays.rollups import counts, histograms, listeners
from musicsvc.store.schema import schema
from tests.conftest import NOW

LABEL = "label@label.test"
FAN = Identity(1, "Label", None, False, True, False, False, 1, "t", NOW + 1)
DAY = 86_400
AT = NOW // SECOND - 600
OPTIONS: dict[str, Callable[..., Any]] = {
    "catalog": lambda: Catalog(ImportOptions(user=LABEL)),
    "plays": lambda: Plays(ImportOptions(listener="me", user=LABEL, create_missing=True)),
    "follows": lambda: Follows(ImportOptions(create_missing=True)),
    "playlists": lambda: Playlists(ImportOptions(user=LABEL)),
}
# What an undo leaves: its own records and events, names of listeners, and how far blocks were counted. Blocks, of lists
# and of days, are compared with their rows instead.
LEFT = {ImportItem, ImportRun, Listener, PlayProgress, ListBlock, SecurityEvent}


def quiet(*_: object) -> None:
    """Ignore the progress."""


def dump(store: Store) -> dict[str, list[Any]]:
    """Return the rows of all tables, with sets of listeners as sorted ids, and histograms as lists."""

    def readable(column: str, value: Any) -> object:
        if column == "histogram":
            return histograms.unpack([value])
        return sorted(listeners.union([value])) if isinstance(value, bytes) else value

    def read() -> dict[str, list[Any]]:
        return {
            table.__name__: sorted(
                (
                    [readable(*cell) for cell in row.items()]
                    for row in table.select().dicts().iterator()
                    if table is not PlayCount or row["key"] >> counts.LEVEL_SHIFT == counts.DAY
                ),
                key=str,
            )
            for table in models.tables()
            if table not in LEFT
        }

    found = store.read(read).result()
    found["EngagementDay"] = [row for row in found["EngagementDay"] if any(row[3:])]  # withdrawn likes leave zeros
    return found


def undone(store: Store, run: int | None) -> UndoSummary:
    """Undo an import, and compare the result with its preview."""
    assert run is not None
    expected = store.read(lambda: undo.preview(run)).result()
    found = undo.undo(store, run, now=NOW, on_progress=quiet)
    if not any(reason.endswith(restoring.CHANGED_SINCE) for _, reason in found.kept):  # which a preview does not know
        kept = [{key: sorted(ids) for key, ids in each.kept.items()} for each in (expected, found)]
        assert kept[0] == kept[1]
        assert (expected.plays, expected.deleted + expected.restored) == (found.plays, found.counts)
    return found


def require_sound(store: Store) -> None:
    assert store.read(schema.problems).result() == []
    report = verify.run(store, check=True, on_progress=quiet)
    assert (report.differing, report.differences) == (0, [])
