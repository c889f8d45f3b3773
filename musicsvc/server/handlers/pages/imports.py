"""Import files in the browser, and undo imports."""

from dataclasses import replace

from musicsvc.config import Settings
from musicsvc.errors import Conflict, Invalid, NotFound
from musicsvc.server.schemas.pages.admin import OlderQuery
from musicsvc.server.schemas.pages.imports import COLUMN, DIVIDE, ColumnsForm, UploadForm
from musicsvc.server.shapes import imports as shapes
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.envelope import Download, as_file
from musicsvc.server.shapes.pages import Newest, Received, Redirect, View
from musicsvc.store.importing.dividing import Dividing
from musicsvc.store.importing.files.encodings import ENCODINGS
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place, chosen_pairs, refused_name
from musicsvc.store.importing.undoing import runs, wording
from musicsvc.store.importing.undoing.runs import RunRow
from musicsvc.store.importing.undoing.undo import preview
from musicsvc.store.models import ImportTask
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated

HOME = "/import"
CHOICES = {*ColumnsForm.model_fields} - {"sheet", "reading"}
READ_AGAIN = "You changed how the file is read, so it is checked again first. See what an import would do now."


def show_all(query: OlderQuery, caller: SessionIdentity, settings: Settings) -> View:
    """Show the form for a file, the file and the undo in progress, and the account's imports."""
    listed = _list(query, caller.user_id)
    tasks = [shapes.file(task) for task in queue.list_own(caller.user_id)]
    values = {"imports": listed, "tasks": tasks, "contact": settings.access.contact_email}
    return View("import/list.html", values, part="state")


def show_everybodys(query: OlderQuery, caller: SessionIdentity) -> View:
    """Show the imports of all accounts, and the undo that the administrator requested."""
    listed = _list(query, None)
    undos = [shapes.file(task) for task in queue.list_own(caller.user_id) if task.step == queue.UNDO]
    return View("admin/imports.html", {"imports": listed, "undos": undos}, part="state")


def _list(query: OlderQuery, user: int | None) -> Newest:
    found = runs.newest(user=user, limit=pages.WANTED, before=query.before)
    return pages.newest_by_id([shapes.run(row) for row in found], lambda each: each["row"].id)


def upload(
    body: UploadForm, received: Received, caller: SessionIdentity, uploads: Place, settings: Settings, now: int
) -> Redirect:
    """Queue an uploaded file to be checked. Raises Invalid for plays if the account may not report those of others.

    Raises Conflict unless an earlier file is imported or given up.
    """
    if body.kind == "plays" and not caller.reports_plays:
        raise Invalid({"kind": _no_plays(settings)})
    stored, place = received.stored_as, uploads.name
    task = queue.create(caller.user_id, body.kind, received.name, stored, place, now, replace=body.replace)
    return Redirect(f"{HOME}/{task}")


def _no_plays(settings: Settings) -> str:
    contact = settings.access.contact_email
    return "Your account may not report plays of others." + (
        f" Ask for it at {contact}." if contact else " Ask an administrator for it."
    )


def show(subject: ImportTask) -> View:
    """Show an uploaded file: its columns and first rows, what an import would do, its progress, or its result.

    Raises NotFound for an undo.
    """
    if subject.step == queue.UNDO:
        raise NotFound("There is no such file of yours.")
    return View("import/file.html", {"file": shapes.file(subject)}, part="state")


def change(subject: ImportTask, body: ColumnsForm) -> Redirect:
    """Check the file again with other columns and options. Raises Invalid for wrong ones."""
    file = shapes.file(subject)
    if body.encoding is not None and body.encoding not in ENCODINGS:
        raise Invalid({"encoding": "There is no such encoding."})
    try:
        pairs = chosen_pairs(subject.kind, file.report["columns"], file.options["pairs"], body.choice)
    except Invalid as wrong:
        raise Invalid({f"{COLUMN}{number}": message for number, message in wrong.errors.items()}) from None
    rules = _rules(file, body)
    if file.report["is_history"] or _is_other_sheet(file, body) or body.encoding != file.options["encoding"]:
        pairs = rules = []  # the columns are known, or have other names
    chosen = body.model_dump(include={"sheet", *CHOICES})
    queue.check_again(subject, {"pairs": pairs, "divide": rules, **chosen})
    return Redirect(f"{HOME}/{subject.id}")


def _rules(file: shapes.File, body: ColumnsForm) -> list[str]:
    """Return the rules that divide the names in columns: those that are filled in, and those that had one so far."""
    found = []
    for number, each in enumerate(file.columns):
        if file.has_names(body.choice(number)) and (body.signs(number) or each.signs is not None):
            if "=" in body.signs(number):
                raise Invalid({f"{DIVIDE}{number}": "Names cannot be divided at =."})
            found.append(f"{each.name}={body.signs(number)}")
            try:
                Dividing(found[-1:])
            except Invalid as wrong:
                raise Invalid({f"{DIVIDE}{number}": wrong.errors["--divide"]}) from None
    return found


def start(subject: ImportTask, body: ColumnsForm, caller: SessionIdentity, settings: Settings) -> Redirect:
    """Queue a checked file to be imported, or continue an import that was interrupted.

    If the form has other choices than the file was checked with, check it again first. Raises Conflict for plays if
    the account may not report those of others.
    """
    if subject.kind == "plays" and not caller.reports_plays:
        raise Conflict(_no_plays(settings))
    if body.reading and _is_changed(shapes.file(subject), body):
        return replace(change(subject, body), notice=READ_AGAIN)
    queue.start(subject)
    return Redirect(f"{HOME}/{subject.id}")


def _is_changed(file: shapes.File, body: ColumnsForm) -> bool:
    """Return whether the form has other choices than its page showed."""
    options = {**file.options, "playlist": (file.playlist or None) if file.task.kind == "playlists" else None}
    if _is_other_sheet(file, body) or any(getattr(body, name) != options[name] for name in CHOICES):
        return True
    shown, fields = [] if file.report["is_history"] else file.columns, dict(file.choices)
    return any(
        body.choice(each.number) != (each.field if each.field in fields else "")
        or (file.has_names(each.field) and body.signs(each.number) != (each.signs or ""))
        for each in shown
    )


def _is_other_sheet(file: shapes.File, body: ColumnsForm) -> bool:
    return bool(file.report["sheets"]) and body.sheet not in {None, file.report["sheets"][0]}


def stop(subject: ImportTask) -> Redirect:
    """Stop the check or the import of a file."""
    queue.stop(subject)
    return Redirect(f"{HOME}/{subject.id}")


def discard(subject: ImportTask) -> Redirect:
    """Remove an uploaded file."""
    queue.discard(subject)
    return Redirect(HOME, f"The file {isolated(subject.file)} is removed.")


def send_refused(subject: ImportTask, uploads: Place) -> Download:
    """Send the refused rows of a file as CSV. Raises NotFound if they are deleted."""
    path = uploads.folder / str(subject.user) / refused_name(subject.stored_as)
    try:
        content = path.read_bytes()
    except OSError:
        raise NotFound("The refused rows are not here any more. Upload the file again.") from None
    return Download(content, "text/csv; charset=utf-8", as_file("refused.csv"))


def preview_undo(home: str, subject: RunRow) -> View:
    """Show what an undo of an import would do.

    `home`: the page of the list of imports.
    """
    queue.require_undoable(subject)
    found = preview(subject.id)
    values = {
        "home": home,
        "run": found.run,
        "deleted": wording.quantities({"play": found.plays} | found.deleted),
        "restored": wording.quantities(found.restored),
        "kept": wording.kept_lines(found.kept, "Keeps", wording.names_of(found.kept)),
    }
    return View("import/undo.html", values)


def undo(home: str, subject: RunRow, caller: SessionIdentity, uploads: Place, now: int) -> Redirect:
    """Queue the undo of an import.

    `home`: the page that shows its progress.
    """
    queue.request_undo(subject, caller.user_id, uploads.name, now)
    return Redirect(home)
