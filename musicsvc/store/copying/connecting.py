"""Connect to the databases of a copy or a comparison."""

from pathlib import Path

from musicsvc import extras
from musicsvc.store.activity import log as activity_log
from musicsvc.store.copying.side import Side
from musicsvc.store.engine.url import path_of


def connect(url: str, log_file: Path | None = None, *, writes: bool = False) -> Side:
    """Open the database at `url`. `log_file`: the file of its activity log, if not the default (SQLite only)."""
    if path := path_of(url):
        from musicsvc.store.copying.sqlite import SqliteSide  # noqa: PLC0415 - loads the driver only if used

        return SqliteSide(url, path, log_file or activity_log.default_file(path), writes=writes)
    with extras.required("postgres"):
        from musicsvc.store.copying.postgres import PostgresSide  # noqa: PLC0415 - the same
    return PostgresSide(url)
