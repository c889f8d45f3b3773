"""Pages to create, edit and delete artists, albums and tracks, for the accounts that manage them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from musicsvc.errors import Conflict, Forbidden, Invalid
from musicsvc.server.schemas import editing
from musicsvc.server.schemas.pages.editing import FieldsForm, NewQuery, read_created, read_former, read_texts
from musicsvc.server.shapes import editing as shapes
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.pages import FormState, Redirect, View
from musicsvc.store.catalog import names
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import creations, deletions, edits, row_texts
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated

Row = ArtistRow | AlbumRow | TrackRow
# The fields that name artists.
ARTISTS = {noun: [field for field in fields if field.noun == "artist"] for noun, fields in FIELDS.items()}
MEANWHILE = "Somebody else has changed this since you opened the form. Save again to replace their value."


def show(noun: str, subject: Row, form: FormState, caller: SessionIdentity) -> View:
    """Show the form of an artist, album or track."""
    texts, notes = row_texts.load(noun, subject.id), row_texts.notes(noun, subject.id)
    shown = _form(noun, texts, form, caller, notes)
    return View("insights/edit.html", {"noun": noun, "row": subject, **shown})


def _form(
    noun: str,
    now: Mapping[str, str],
    form: FormState,
    caller: SessionIdentity,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> JSON:
    """Return the inputs of a form. `now`, `notes`: the texts of the fields, and what stands beside them."""
    typed = read_texts(noun, form.values)
    unknown = {field.name: _unknown(typed[field.name]) for field in ARTISTS[noun]}
    texts = shapes.Texts(now, typed, read_former(noun, form.values), notes, unknown, read_created(form.values))
    known = {each: names.managed(each, caller.user_id) for each in ("artist", "album")}
    return shapes.inputs(noun, texts, form, row_texts.blank(noun)) | {"known": known}


def _unknown(text: str) -> list[str]:
    """Return the lines of a text that are names of no artist."""
    lines = dict.fromkeys(line.strip() for line in text.split("\n")[: row_texts.TOO_MANY])
    return [line for line in lines if names.is_unknown("artist", line)]


def _with_created(
    noun: str, texts: Mapping[str, str], sent: Mapping[str, Any], caller: SessionIdentity, now: int
) -> dict[str, str]:
    """Create the artists that the user lets the form create. Return the texts, with ids in place of their names."""
    asked, found = read_created(sent), dict(texts)
    for field in ARTISTS[noun] if asked else ():
        made = {
            name: creations.ensure_artist(name, now=now, actor=caller)
            for name in _unknown(texts[field.name])
            if name in asked
        }
        found[field.name] = "\n".join(made.get(line.strip(), line) for line in texts[field.name].split("\n"))
    return found


def save(noun: str, subject: Row, body: FieldsForm, caller: SessionIdentity, now: int) -> Redirect:
    """Change the fields whose texts differ from those that the form has shown.

    Raises Invalid for wrong fields, and for those that somebody else has changed.
    """
    current = row_texts.load(noun, subject.id, lock=True)
    sent = body.model_extra or {}
    texts, former = _with_created(noun, read_texts(noun, sent), sent, caller, now), read_former(noun, sent)
    changed, errors = {}, {}
    for field in FIELDS[noun]:
        text, was, now_is = texts[field.name], former[field.name], current[field.name]
        if field.differs(text, was) and field.differs(text, now_is):
            changed[field.name] = text
            if field.differs(was, now_is):
                errors[field.name] = MEANWHILE
    changes, invalid = editing.read(noun, changed, editing.EDIT[noun], now=now, manager_id=caller.user_id)
    if errors := invalid | errors:
        raise Invalid(errors)
    if changes:
        with _correctable():
            edits.edit(subject, changes, now=now, caller=caller, actor="page")
    notice = "Your changes are saved." if changes else "There was nothing to change."
    return Redirect(f"/insights/{noun}/{subject.id}", notice)


@contextmanager
def _correctable() -> Iterator[None]:
    """Let the form be shown again if it names an artist or album of others."""
    try:
        yield
    except Forbidden as failure:
        raise Conflict(failure.message) from None


def show_new(noun: str, query: NewQuery, form: FormState, caller: SessionIdentity) -> View:
    """Show the form of a new artist, album or track."""
    texts = row_texts.blank(noun) | row_texts.given(noun, query.artist, query.album)
    chosen = query.model_dump(exclude_none=True)
    shown = _form(noun, texts, form, caller)
    return View("insights/new.html", {"noun": noun, "chosen": chosen, **shown})


def create(noun: str, body: FieldsForm, caller: SessionIdentity, now: int) -> Redirect:
    """Create an artist, album or track. Raises Invalid for wrong fields."""
    sent = body.model_extra or {}
    texts = _with_created(noun, read_texts(noun, sent), sent, caller, now)
    texts = {name: text for name, text in texts.items() if text.strip()}
    values, errors = editing.read(noun, texts, editing.NEW[noun], now=now, manager_id=caller.user_id)
    if errors:
        raise Invalid(errors)
    with _correctable():
        row = creations.CREATE[noun](values, now=now, actor=caller)
    return Redirect(f"/insights/{noun}/{row.id}", f"{isolated(row.name)} is created.")


def show_deletion(noun: str, subject: Row) -> View:
    """Show what the deletion of an artist, album or track concerns, and asks."""
    refused = None
    try:
        if isinstance(subject, ArtistRow):
            deletions.require_unneeded(subject)
    except Conflict as failure:
        refused = failure.message
    concerned = deletions.count_concerned(noun, subject.id)
    return View("insights/delete.html", {"noun": noun, "row": subject, "refused": refused, "concerned": concerned})


def delete(subject: Row, caller: SessionIdentity, now: int) -> Redirect:
    """Delete an artist, album or track."""
    deletions.delete(subject, now=now, account=caller.user_id, actor="page")
    return Redirect("/insights", f"{isolated(subject.name)} is deleted.")
