"""Record each import and the rows that it creates and changes, so that it can be listed and undone."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import orjson
from peewee import Model, fn

from musicsvc.errors import Conflict, Failure, first
from musicsvc.store.accounts import users
from musicsvc.store.accounts.managing import managed_by, managed_by_others
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import compiled
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.summary import Counts
from musicsvc.store.models import Album, AlbumArtist, Artist, ImportItem, ImportRun, Track, TrackArtist, User
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor, Kind
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

Changes = dict[str, Any]  # by field: [old value, new value], or a list of added ids if the field begins with ADDED
ADDED = "+"


class RunRow(NamedTuple):
    """An import, with the e-mail address of its account (None without one) and its counts by kind."""

    id: int
    kind: str
    file: str
    user: str | None
    state: str
    rows: int
    counts: dict[str, dict[str, int]]
    started_at: int
    undone_at: int | None


def start(kind: str, file: str, user: int | None, counts: Mapping[str, Counts], now: int, actor: Actor) -> int:
    """Record that an import begins, and return its id. `file`: the name of its file."""
    row = {"kind": kind, "file": file, "user": user, "state": "running", "started_at": now}
    run = int(ImportRun.create(**row, counts=_to_json(counts)).id)
    log(run, "import.started", now=now, actor=actor)
    return run


@contextmanager
def recording(store: Store, start: Callable[[], int], now: int, actor: Actor) -> Iterator[int]:
    """Record the import that runs in the `with` block, which begins with `start`. Yield the import's id."""
    run = store.write(start).result()
    end: Kind = "import.stopped"
    try:
        yield run
        end = "import.done"
    finally:
        store.write(partial(end_run, run, end, now, actor)).result()


def end_run(run: int, kind: Kind, now: int, actor: Actor) -> None:
    """Record that the running import reached the end of its file (`import.done`) or ended early (`import.stopped`)."""
    state = kind.removeprefix("import.")
    if ImportRun.update(state=state).where(ImportRun.id == run, ImportRun.state == "running").execute():
        row = get(run)
        changes = {
            of: [f"{each[name]:,} {name}" for name in ("new", "changed") if each[name]]
            for of, each in row.counts.items()
        }
        found = [f"{of}: {', '.join(some)}" for of, some in changes.items() if some] or ["nothing new"]
        log(run, kind, f"{quantity(row.rows, 'row')} read; {'; '.join(found)}", now=now, actor=actor)


def log(run: int, kind: Kind, counts: str = "", *, now: int, actor: Actor) -> None:
    """Log a security event about an import, with its id, kind and file. `counts`: what it did, in words."""
    row = ImportRun.get_by_id(run)
    about = f"import {run} ({row.kind}, {row.file})"
    reason = f"{about}: {counts}" if counts else about
    security_events.add(kind, account_id=row.user, reason=reason, now=now, actor=actor)


def record_counts(run: int, rows: int, counts: Mapping[str, Counts]) -> None:
    """Record how many rows of the file are imported, and their counts by kind.

    Call it in the transaction of each batch, so that the counts are right even if the import is killed.
    """
    ImportRun.update(rows=rows, counts=_to_json(counts)).where(ImportRun.id == run).execute()


def _to_json(counts: Mapping[str, Counts]) -> str:
    return orjson.dumps({kind: asdict(each) for kind, each in counts.items()}).decode()


def begin_batch(run: int) -> None:
    """Lock out other imports until the transaction ends. Raise Failure if the import or its account is gone."""
    lock_imports()
    row = ImportRun.get_by_id(run)
    if row.state != "running":
        raise Failure(f"Import {run} was undone while it ran.")
    if row.user is not None and users.missing([row.user]):
        raise Failure(f"The account of import {run} was deleted while it ran.")


def add_slots(run: int, slots: Collection[int]) -> None:
    """Record that the import stored plays in these slots (half minutes since 1970)."""
    if slots:
        row = ImportRun.get_by_id(run)
        known = [each for each in (row.first_slot, row.last_slot) if each is not None]
        span = {"first_slot": min([*slots, *known]), "last_slot": max([*slots, *known])}
        ImportRun.update(span).where(ImportRun.id == run).execute()


def made(run: int, table: type[Model], ids: Collection[int]) -> None:
    """Record that the import created these rows of the table."""
    kind = table_name(table)
    bulk.insert(ImportItem, ("run", "kind", "item"), [(run, kind, each) for each in ids])


def changed(run: int, table: type[Model], changes: Mapping[int, Changes]) -> None:
    """Record how the import changed rows, by row id. Rows that the import created itself stay recorded as created."""
    if not changes:
        return
    earlier = dict(_items(run, table_name(table), list(changes)))
    merged = {
        each: _merge(orjson.loads(earlier.get(each, "{}")), new)
        for each, new in changes.items()
        if earlier.get(each, "") is not None
    }
    replace(run, table, [each for each in earlier if each in merged], merged)
    if table is Track:
        _mark(run, changes.values())


def items(run: int, table: type[Model], condition: Any) -> Any:
    """Select the ids of the rows of a table whose records of this import meet a condition."""
    query = ImportItem.select(ImportItem.item)
    return query.where(ImportItem.run == run, ImportItem.kind == table_name(table), condition)


@compiled
def _items(run: int, kind: str, ids: Sequence[int]) -> Any:
    query = ImportItem.select(ImportItem.item, ImportItem.changes)
    return query.where(ImportItem.run == run, ImportItem.kind == kind, ImportItem.item.in_(ids))


def replace(run: int, table: type[Model], ids: Collection[int], changes: Mapping[int, Changes]) -> None:
    """Delete the records that the import created or changed the rows `ids`, and record `changes`, by row id."""
    kind = table_name(table)
    if ids:
        chosen = ImportItem.item.in_(list(ids))
        ImportItem.delete().where(ImportItem.run == run, ImportItem.kind == kind, chosen).execute()
    rows = [(run, kind, each, orjson.dumps(change).decode()) for each, change in changes.items()]
    bulk.insert(ImportItem, ("run", "kind", "item", "changes"), rows)


def _mark(run: int, changes: Iterable[Changes]) -> None:
    """Record the earlier albums and artists of changed tracks, so that undoing other imports does not delete them."""
    albums = {each["album"][0] for each in changes if "album" in each} - {None}
    artists = {artist for each in changes if "artists" in each for artist in each["artists"][0]}
    for table, ids in ((Album, albums), (Artist, artists)):
        known = {item for item, _ in _items(run, table_name(table), list(ids))} if ids else set()
        replace(run, table, (), {each: {} for each in sorted(ids - known)})


def _merge(first: Changes, then: Changes) -> Changes:
    """Combine two successive changes of a row: old values are taken from the first, new values from the second."""
    merged = dict(first)
    for name, value in then.items():
        if name not in first:
            merged[name] = value
        else:
            merged[name] = first[name] + value if name.startswith(ADDED) else [first[name][0], value[1]]
    return merged


def table_name(table: type[Model]) -> str:
    name: str = table._meta.table_name  # noqa: SLF001 - Peewee's documented access to a table's names
    return name


def newest(*, limit: int | None = None, user: int | None = None, before: int | None = None) -> list[RunRow]:
    """Return the imports of the account `user`, or of all, newest first: `limit` of them, with ids below `before`."""
    chosen = [ImportRun.user == user] * (user is not None) + [ImportRun.id < before] * (before is not None)
    return _find(*chosen, limit=limit)


def get_own(run: int, actor: SessionIdentity) -> RunRow:
    """Return an import for the account of `actor`, which may undo it.

    Raises NotFound, or Conflict if its artists or tracks went to another account since.
    """
    found = _find(ImportRun.id == run, ImportRun.user == actor.user_id)
    own = first(found, f"There is no import {run} of yours.")
    require_own(run, actor.user_id)
    return own


def require_own(run: int, user: int) -> None:
    """Raise Conflict if artists, albums or tracks of an import of the account belong to another one now."""
    item, others = ImportItem.item, Artist.select().where(Artist.id == ImportItem.item, managed_by_others(user))
    lost = (ImportItem.kind == "artist") & ImportItem.changes.is_null() & fn.EXISTS(others)
    for kind, of in ((Track, TrackArtist.track), (Album, AlbumArtist.album)):
        credit = of.model.select().where(of == item)
        own = credit.join(Artist).where(managed_by(user))
        lost |= (ImportItem.kind == table_name(kind)) & fn.EXISTS(credit) & ~fn.EXISTS(own)
    if ImportItem.select().where(ImportItem.run == run, lost).exists():
        raise Conflict(f"Artists of import {run} belong to another account now. Ask the operator to undo it.")


def account_of(run: int) -> int | None:
    """Return the account that the import belongs to, which may be deleted, or None."""
    found: int | None = ImportRun.get_by_id(run).user
    return found


def get(run: int) -> RunRow:
    """Return an import. Raises NotFound."""
    return first(_find(ImportRun.id == run), f"There is no import {run}; musicsvc import list shows all.")


def _find(*conditions: Any, limit: int | None = None) -> list[RunRow]:
    """Return the imports that meet all conditions, newest first."""
    names = ("id", "kind", "file", "state", "rows", "counts", "started_at", "undone_at")
    columns = [getattr(ImportRun, name) for name in names]
    columns.insert(RunRow._fields.index("user"), User.email)
    query = ImportRun.select(*columns).join(User, "LEFT JOIN", on=(User.id == ImportRun.user))
    query = query.where(*conditions) if conditions else query
    place = RunRow._fields.index("counts")
    rows = query.order_by(ImportRun.id.desc()).limit(limit).tuples().iterator()
    return [RunRow(*values)._replace(counts=orjson.loads(values[place])) for values in rows]
