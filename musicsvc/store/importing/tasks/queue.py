"""The queue of uploaded files to check and import, and of imports to undo. An account has at most one of each."""

from collections.abc import Mapping
from typing import Any

import orjson

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Failure, Overloaded, existing
from musicsvc.store.accounts import users
from musicsvc.store.engine.sql import refusing_duplicates
from musicsvc.store.importing.undoing import runs
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.models import ImportTask, User
from musicsvc.store.security.sessions import SessionIdentity

CHECK, IMPORT, UNDO = "check", "import", "undo"
WAITING, RUNNING, STOPPING, DONE, STOPPED = "waiting", "running", "stopping", "done", "stopped"
ENDED, ACTIVE = (DONE, STOPPED), (RUNNING, STOPPING)
MOST_WAITING = 32
RETRY_AFTER = 30
KEPT, LOST = DAY, 2 * DAY
NOT_IDLE = "The file is being read or was imported. Open its page again to see its state."
UNDER_WAY = "An import of yours is under way. Wait until it is done, or stop it."
UNDOING = "An undo of yours is under way. Wait until it is done."
FULL = f"{MOST_WAITING} imports are waiting already. Try again in half a minute."
INTERRUPTED = "The service was interrupted while it worked on this."
NO_FILE = "There is no such file of yours. It was imported, replaced, or removed after a day."
NO_RIGHT = "Your account may not import such files any more."


class StoppedError(Failure):
    """A task was stopped by its account, for lack of rights, or because the service stops."""


def create(user: int, kind: str, file: str, stored_as: str, place: str, now: int, *, replace: bool = False) -> int:
    """Add an uploaded file in the place of an earlier one, and return its id.

    Raises Conflict while that is read or imported and, without `replace`, unless it is imported.
    """
    _require_room()
    idle = ImportTask.state.in_(ENDED) | ((ImportTask.step == CHECK) & (ImportTask.state == WAITING))
    earlier = ImportTask.get_or_none(ImportTask.user == user, ImportTask.step != UNDO, idle)
    if earlier is not None and not replace and (earlier.step, earlier.state) != (IMPORT, DONE):
        raise Conflict(f"{earlier.file} is not imported yet. Import it first, or choose to replace it.")
    ImportTask.delete().where(ImportTask.user == user, ImportTask.step != UNDO, idle).execute()
    row = {"user": user, "step": CHECK, "state": WAITING, "kind": kind, "created_at": now}
    return _insert(row | {"file": file, "stored_as": stored_as, "place": place}, UNDER_WAY)


def request_undo(run: RunRow, user: int, place: str, now: int) -> int:
    """Request the undo of an import, whose file is not shown as imported any more.

    Raises Conflict if another undo of the account runs, and as `require_undoable`.
    """
    require_undoable(run)
    _require_room()
    ImportTask.delete().where(ImportTask.user == user, ImportTask.step == UNDO, ImportTask.state.in_(ENDED)).execute()
    imported = (ImportTask.step == IMPORT) & (ImportTask.run == run.id)
    ImportTask.delete().where(imported, ImportTask.state == DONE).execute()
    ImportTask.update(run=None).where(imported).execute()
    row = {"user": user, "step": UNDO, "state": WAITING, "kind": run.kind, "created_at": now}
    return _insert(row | {"file": run.file, "stored_as": "", "place": place, "run": run.id}, UNDOING)


def require_undoable(run: RunRow) -> None:
    """Raise Conflict if the import runs or was undone."""
    if run.state in {"running", "undone"}:
        raise Conflict(f"Import {run.id} is {run.state}. It cannot be undone now.")


def _require_room() -> None:
    if ImportTask.select().where(ImportTask.state == WAITING).count() >= MOST_WAITING:
        raise Overloaded(FULL, RETRY_AFTER)


def _insert(row: Mapping[str, Any], conflict: str) -> int:
    with refusing_duplicates(Conflict(conflict)):
        return int(ImportTask.create(**row).id)


def get_own(task_id: int, actor: SessionIdentity) -> ImportTask:
    """Return a task of the account of `actor`. Raises NotFound."""
    own = ImportTask.get_or_none(ImportTask.id == task_id, ImportTask.user == actor.user_id)
    found: ImportTask = existing(own, NO_FILE)
    return found


def list_own(user: int) -> list[ImportTask]:
    """Return the tasks of an account: its uploaded file first."""
    return sorted(ImportTask.select().where(ImportTask.user == user), key=lambda task: task.step == UNDO)


def check_again(task: ImportTask, options: Mapping[str, Any]) -> None:
    """Check the file with other options. Raises Conflict while it is being read, and once it is imported."""
    _require_room()
    _change(task, _is_idle(), step=CHECK, state=WAITING, options=orjson.dumps(options).decode(), percent=0)


def start(task: ImportTask) -> None:
    """Import the file. Raises Conflict unless it was checked, or its import has stopped."""
    if task.step == CHECK and options_of(task.report).get("problem"):
        raise Conflict("The file cannot be imported like this. Correct the columns first.")
    _require_room()
    ready = (ImportTask.step == CHECK) & (ImportTask.state == DONE)
    stopped = (ImportTask.step == IMPORT) & (ImportTask.state == STOPPED)
    _change(task, ready | stopped, step=IMPORT, state=WAITING, percent=0, run=None)


def _change(task: ImportTask, when: Any, **values: Any) -> None:
    if not ImportTask.update(**values).where(ImportTask.id == task.id, ImportTask.step != UNDO, when).execute():
        raise Conflict(NOT_IDLE)


def _is_idle() -> Any:
    """Return the condition of a file that is neither being read nor imported."""
    return ImportTask.state.in_(ENDED) & ~((ImportTask.step == IMPORT) & (ImportTask.state == DONE))


def stop(task: ImportTask) -> None:
    """Stop a task that waits, or make one that runs stop within seconds."""
    if not _move(task.id, WAITING, STOPPED):
        _move(task.id, RUNNING, STOPPING)


def discard(task: ImportTask) -> None:
    """Remove an uploaded file. Raises Conflict while it is being read, and once it is imported."""
    if not ImportTask.delete().where(ImportTask.id == task.id, _is_idle()).execute():
        raise Conflict(NOT_IDLE)


def waiting(place: str) -> list[ImportTask]:
    """Return the tasks that wait for this place, the oldest first."""
    query = ImportTask.select().where(ImportTask.state == WAITING, ImportTask.place == place)
    return list(query.order_by(ImportTask.id))


def claim(task_id: int) -> bool:
    """Return True if the task was waiting, and is now running."""
    return _move(task_id, WAITING, RUNNING)


def _move(task_id: int, before: str, after: str) -> bool:
    query = ImportTask.update(state=after).where(ImportTask.id == task_id, ImportTask.state == before)
    return bool(query.execute())


def beat(task_id: int, percent: int, run: int | None) -> None:
    """Record the progress of a running task. Raises StoppedError if it must stop."""
    found = ImportTask.get_or_none(ImportTask.id == task_id)
    if found is None or found.state != RUNNING:
        raise StoppedError("You stopped it.")
    if not may_import(users.get(found.user), found.kind, found.step):
        raise StoppedError(NO_RIGHT)
    ImportTask.update(percent=percent, run=run).where(ImportTask.id == task_id).execute()


def may_import(user: User, kind: str, step: str) -> bool:
    """Return whether the account may import files of this kind. An undo needs no right to report plays."""
    if user.suspended_at is not None:
        return False
    if step == UNDO:
        return bool(user.api_access or user.admin)
    return bool(user.api_access and (kind != "plays" or user.reports_plays))


def finish(task_id: int, state: str, report: Mapping[str, Any], run: int | None) -> None:
    """Record the end of a task."""
    values = {"state": state, "report": orjson.dumps(report).decode(), "run": run, "percent": 100}
    ImportTask.update(values).where(ImportTask.id == task_id).execute()


def unsettled(place: str, now: int) -> set[int]:
    """Return the accounts with tasks that `settle` may stop or delete."""
    due = (ImportTask.created_at <= now - KEPT) | (ImportTask.state.in_(ACTIVE) & (ImportTask.place == place))
    return {user for (user,) in ImportTask.select(ImportTask.user).where(due).tuples().iterator()}


def settle(user: int, place: str, now: int) -> list[str]:
    """Stop the tasks of an account that no process works on any more, and delete old ones. Return the files to keep.

    Those of other places, of any account, count as such after two days: their machine may be gone, or have a new name.
    Call this while the account's folder is locked.
    """
    own = (ImportTask.user == user) & (ImportTask.place == place)
    lost = (ImportTask.place != place) & (ImportTask.created_at <= now - LOST)
    for task in ImportTask.select().where(own | lost, ImportTask.state.in_(ACTIVE)):
        finish(task.id, STOPPED, options_of(task.report) | {"problem": INTERRUPTED, "again": True}, task.run)
        if task.step == IMPORT and task.run is not None:
            runs.end_run(task.run, "import.stopped", now, "page")
    ImportTask.delete().where(ImportTask.created_at <= now - KEPT, ImportTask.state.not_in(ACTIVE)).execute()
    return files_of(user, place)


def files_of(user: int, place: str) -> list[str]:
    """Return the names of the account's files at a place that are still needed."""
    own = (ImportTask.user == user) & (ImportTask.place == place) & (ImportTask.step != UNDO)
    return [task.stored_as for task in ImportTask.select().where(own)]


def options_of(text: str) -> dict[str, Any]:
    """Return stored options, or a stored report."""
    found: dict[str, Any] = orjson.loads(text)
    return found
