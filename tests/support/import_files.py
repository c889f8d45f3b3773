"""Imports of files and of rows."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import histories, readers
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import Kind
from musicsvc.store.importing.summary import ImportSummary
from tests.conftest import NOW

Rows = Sequence[Mapping[str, object]]
Import = Callable[..., ImportSummary]


def quiet(_summary: ImportSummary) -> None:
    """Ignore the progress."""


def import_file(
    store: Store,
    file: Path,
    kind: Kind[Any],
    rows: Rows | None = None,
    *,
    now: int = NOW,
    on_progress: Callable[[ImportSummary], None] = quiet,
) -> ImportSummary:
    """Import the file, to which the rows are written before if there are any, as JSON Lines."""
    if rows is not None:
        file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    form = None if rows is None else "jsonl"
    opened = histories.open_file(file, form) if isinstance(kind, Plays) else readers.open_file(file, form)
    with closing(opened) as reader:
        return runner.run(store, reader, kind, now=now, on_progress=on_progress)
