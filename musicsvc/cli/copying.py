"""`musicsvc db copy` and `musicsvc db compare`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsvc import secret_files
from musicsvc.cli import interrupts, output, progress
from musicsvc.cli.options import argument, named
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.copying import compare as comparing
from musicsvc.store.copying import copy as copying
from musicsvc.store.copying import databases
from musicsvc.store.engine.url import SQLITE, path_of, without_password
from musicsvc.wording import escape_controls, quantity

VISIBLE = (
    "a password in an argument is visible to other users. Leave it out, and put it into libpq's password file"
    " (PGPASSFILE), or put the whole URL into a file and write @FILE."
)
HELP = "A file of SQLite, a URL (sqlite:///…, postgresql://…) without password, or @FILE: a file with the URL."


def _url(text: str) -> str:
    """Return the URL that an argument names. Raises BadParameter if the argument contains a password."""
    if text.startswith("@"):
        try:
            text = secret_files.read(Path(text[1:]), f"the file {text[1:]}").strip()
        except Failure as failure:
            raise typer.BadParameter(failure.here) from None
    elif without_password(text) != text:
        raise typer.BadParameter(VISIBLE)
    if "://" not in named(text):
        return f"{SQLITE}{Path(text).absolute()}"
    if not text.startswith((SQLITE, "postgresql://", "postgres://")):
        raise typer.BadParameter("must be a file, or begin with sqlite:/// or postgresql://.")
    from musicsvc.setting_types import check_address  # here, as help texts do without pydantic

    try:
        return check_address(text)
    except ValueError as fault:
        raise typer.BadParameter(f"{fault}.") from None


From = Annotated[str, argument("FROM", HELP, parser=_url)]
To = Annotated[str, argument("TO", "The other database, named in the same way.", parser=_url)]


def copy(session: Session, source: From, target: To) -> None:
    """Copy a database to an empty one, from SQLite to PostgreSQL, back, or to the same kind.

    While a server uses FROM, this copies most of it. Run it again with the server stopped to copy the rest.
    """
    one, other = (os.path.realpath(path) if (path := path_of(url)) else url for url in (source, target))
    if one == other:
        raise Failure(f"FROM and TO are the same database: {_name(source)}.")
    began = session.clock.monotonic()
    stopping = interrupts.stopping(session, "Everything copied so far is kept.")
    with stopping, _side(session, source) as opened, progress.bar(session, "copy") as on_progress:
        copied = copying.copy(opened, _direct(session, target), _log_file(session, target), on_progress)
    seconds = session.clock.monotonic() - began
    session.echo(
        f"Compared {quantity(copied.rows, 'row')} of {_name(source)} with {_name(target)}: copied {copied.inserted:,},"
        f" deleted {copied.deleted:,}, in {seconds:.1f} s."
    )
    if copied.complete:
        with opening.connect(target, session.migrations) as store:
            warning = store.reserve_space()
        session.echo(f"The copy is complete. {warning}".rstrip())
    else:
        session.echo(
            f"The copy is not complete, because {_name(source)} was in use. Stop its server, then run this command"
            " again: it copies what has changed. Until then, no server can use the copy."
        )
    if session.json:
        result = {"from": _name(source), "to": _name(target), **asdict(copied), "seconds": round(seconds, 3)}
        output.print_json(result)


def compare(session: Session, source: From, target: To) -> None:
    """Compare all rows of two databases; exit with 1 if one differs.

    Both may be in use: one snapshot of each is compared.
    """
    with ExitStack() as stack:
        one, other = (stack.enter_context(_side(session, url)) for url in (source, target))
        on_progress = stack.enter_context(progress.bar(session, "compare"))
        found = comparing.compare(one, other, on_progress)
    if session.json:
        output.print_json(_to_json(found))
    else:
        output.print_table(session, [_summary(table) for table in found.tables], _summary(found.tables[0]))
        for line in (*map(_line, found.differences), *found.problems):
            typer.echo(escape_controls(line))
    session.echo(_verdict(found))
    if not found.equal:
        raise typer.Exit(1)


@contextmanager
def _side(session: Session, url: str) -> Iterator[databases.CopiedDatabase]:
    """Open a database that exists, for reading. Raises Failure unless its schema is current."""
    with copying.connect(_direct(session, url), _log_file(session, url)) as opened:
        opened.require_current()
        yield opened


def _direct(session: Session, url: str) -> str:
    """Return the URL of the database without a pooler, if the settings are those of the database at `url`."""
    settings = session.settings()
    return settings.direct_url if url == settings.store_url else url


def _log_file(session: Session, url: str) -> Path | None:
    """Return the setting `activity.file` if the settings are those of the database at `url`, else None."""
    settings = session.settings()
    return settings.activity.file if url == settings.store_url else None


def _name(url: str) -> str:
    return without_password(url.removeprefix(SQLITE))


def _to_json(found: comparing.Comparison) -> output.JSON:
    return {
        "equal": found.equal,
        "different": found.different,
        "tables": [
            {"table": each.name, "from": asdict(each.source), "to": asdict(each.target), "different": each.different}
            for each in found.tables
        ],
        "differences": [asdict(each) for each in found.differences],
        "problems": found.problems,
    }


def _summary(table: comparing.ComparedTable) -> output.JSON:
    return {
        "table": table.name,
        "from": f"{table.source.rows:,}",
        "to": f"{table.target.rows:,}",
        "different": f"{table.different:,}",
        "sha256": table.source.digest[:12],
        "sha256_of_to": table.target.digest[:12],
    }


def _line(difference: comparing.Difference) -> str:
    key = ", ".join(f"{column} {value}" for column, value in difference.key.items())
    if difference.only_in:
        return f"{difference.table}: {key}: only in {difference.only_in.upper()}"
    return f"{difference.table}: {key}: {', '.join(difference.columns)}"


def _verdict(found: comparing.Comparison) -> str:
    if found.equal:
        return f"The databases are equal: {quantity(sum(table.source.rows for table in found.tables), 'row')}."
    named = f", of which {len(found.differences)} are named" if found.different > len(found.differences) else ""
    more = f" {quantity(len(found.problems), 'count or index', 'counts and indexes')} wrong." if found.problems else ""
    return f"The databases differ in {quantity(found.different, 'row')}{named}.{more}"
