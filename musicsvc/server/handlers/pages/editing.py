"""Pages to edit artists, albums and tracks, for the accounts that manage them."""

from collections.abc import Callable

from musicsvc.errors import Conflict, Forbidden, Invalid
from musicsvc.server.schemas import editing
from musicsvc.server.schemas.pages.editing import FieldsForm, read_former, read_texts
from musicsvc.server.shapes import editing as shapes
from musicsvc.server.shapes.pages import FormState, Redirect, View
from musicsvc.store.catalog import names
from musicsvc.store.catalog.albums import AlbumRow
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.catalog.tracks import TrackRow
from musicsvc.store.editing import edits, typed
from musicsvc.store.editing.fields import FIELDS
from musicsvc.store.security.sessions import SessionIdentity

Row = ArtistRow | AlbumRow | TrackRow
SUGGESTED = 500  # names in a list to choose from; others can be typed
MEANWHILE = "Somebody else has changed this since you opened the form. Save again to replace their value."


def show(noun: str) -> Callable[..., View]:
    """Return the handler that shows the form of an artist, album or track."""

    def show_form(subject: Row, form: FormState, caller: SessionIdentity) -> View:
        texts = shapes.Texts(
            typed.load(noun, subject.id), read_texts(noun, form.values), read_former(noun, form.values)
        )
        inputs = shapes.inputs(noun, texts, form, editing.choices(editing.EDIT[noun]))
        known = {each: names.managed(each, caller.user_id, SUGGESTED) for each in ("artist", "album")}
        return View("insights/edit.html", {"noun": noun, "row": subject, "inputs": inputs, "known": known})

    return show_form


def save(noun: str) -> Callable[..., Redirect]:
    """Return the handler that changes the fields whose texts differ from those that the form has shown."""

    def save_changes(subject: Row, body: FieldsForm, caller: SessionIdentity, now: int) -> Redirect:
        current = typed.load(noun, subject.id, lock=True)
        sent = body.model_extra or {}
        texts, former = read_texts(noun, sent), read_former(noun, sent)
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
            try:
                edits.edit(subject, changes, now=now, actor=caller)
            except Forbidden as failure:  # an artist or album of others, to be corrected in the form
                raise Conflict(failure.message) from None
        notice = "Your changes are saved." if changes else "There was nothing to change."
        return Redirect(f"/insights/{noun}/{subject.id}", notice)

    return save_changes
