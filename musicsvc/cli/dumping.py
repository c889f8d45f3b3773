"""`musicsvc plays dump`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

from musicsvc.cli import output, progress
from musicsvc.cli.options import option
from musicsvc.cli.session import Session
from musicsvc.clock import isoformat
from musicsvc.reports import dumps, parquet
from musicsvc.server.request import executors
from musicsvc.server.shapes import envelope
from musicsvc.store.engine import sql
from musicsvc.store.insights import figures
from musicsvc.store.insights.listening import listening
from musicsvc.store.plays import dumping
from musicsvc.store.plays.periods import to_date
from musicsvc.wording import quantity

OnProgress = Callable[[float, float], None]
Folder = Annotated[Path, option("DIR", "The folder of the dump; it is created if it is missing.", "--output", "-o")]


def dump(session: Session, folder: Folder) -> None:
    """Write single plays and their tracks as Parquet files.

    The server may run. A later run writes only the days that changed. Listeners are numbers, without their names.
    """
    now, began = session.now, session.clock.monotonic()
    executors.lower_priority()
    with session.store() as store, dumps.opened(folder) as target, progress.bar(session, "plays") as on_progress:
        with closing(target):
            summary = store.read(lambda: _write(target, on_progress)).result()
        removed = target.publish(_about(now, summary))
    result = _result(target, summary, removed) | {"seconds": round(session.clock.monotonic() - began, 3)}
    output.print_result(session, _describe(folder, result), result)


def _write(target: dumps.Dump, on_progress: OnProgress) -> dumping.Summary:
    """Stage all files that changed, from one snapshot. May be called again after a fault of the connection."""
    target.begin()
    summary, done = dumping.summarize(), 0

    def counted(pieces: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        nonlocal done
        for plays, lines in pieces:
            yield plays, lines
            done += plays
            on_progress(done, max(done, summary.expected))

    with sql.without_memory_map():
        for part in dumping.parts(summary.kept_from):
            path = f"{dumps.PLAYS}/day={to_date(part.day)}/part-{part.number}.parquet"
            target.add(dumps.PLAYS, path, counted(dumping.lines(part)))
        for table in dumping.TABLES:
            lines = parquet.json_lines(dumps.COLUMNS[table], dumping.rows(table))
            target.add(table, f"tables/{table}.parquet", ((1, line) for line in lines))
    return summary


def _about(now: int, summary: dumping.Summary) -> output.JSON:
    """Return what the manifest says beside its files."""
    return {
        "dumped_at": isoformat(now),
        "last_play": envelope.format_time(summary.last_play),
        "complete_from": output.format_day(summary.kept_from),
        "definitions": {each.path: each.definition for each in (*figures.IN_DATA, *listening.LISTENING)},
        "columns": {name: {each.name: each.definition for each in columns} for name, columns in dumps.COLUMNS.items()},
    }


def _result(target: dumps.Dump, summary: dumping.Summary, removed: list[str]) -> output.JSON:
    plays = [each for each in target.files if each.path.startswith(f"{dumps.PLAYS}/")]
    return {
        "plays": sum(each.rows for each in plays),
        "bytes": sum(each.bytes for each in target.files),
        "files": len(target.files),
        "written": target.written,
        "removed": removed,
        "last_play": envelope.format_time(summary.last_play),
        "complete_from": output.format_day(summary.kept_from),
    }


def _describe(folder: Path, result: output.JSON) -> str:
    text = (
        f"{folder} has {quantity(result['plays'], 'play')} in {quantity(result['files'], 'file')}: wrote"
        f" {len(result['written']):,}, removed {len(result['removed']):,}, in {result['seconds']:.1f} s."
    )
    first = result["complete_from"]
    return f"{text} Plays before {first} were deleted; only their counts are kept." if first else text
