"""Validation of fields of artists, albums and tracks that people typed, by the schemas of the API."""

from collections.abc import Mapping
from typing import Any

from musicsvc.errors import Failure
from musicsvc.server.schemas.catalog import AlbumEdit, AlbumIn, ArtistEdit, ArtistIn, TrackEdit, TrackIn
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.reading import REQUIRED, Errors, check
from musicsvc.store.catalog import fields
from musicsvc.store.editing import row_texts

EDIT: Mapping[str, type[Body]] = {"artist": ArtistEdit, "album": AlbumEdit, "track": TrackEdit}
NEW: Mapping[str, type[Body]] = {"artist": ArtistIn, "album": AlbumIn, "track": TrackIn}


def read(
    noun: str, texts: Mapping[str, str], schema: type[Body], *, now: int, manager_id: int | None = None
) -> tuple[dict[str, Any], Errors]:
    """Return the values that the texts of some fields mean, as the schema does, and a message for each invalid field.

    Call inside a transaction. Names in place of ids mean first what the account `manager_id` manages.
    """
    sent: dict[str, Any] = {}
    errors: Errors = {}
    for field in fields.FIELDS[noun]:
        if field.name in texts:
            try:
                sent[field.name] = row_texts.find_ids(field, field.parse(texts[field.name]), manager_id)
            except Failure as failure:
                errors[field.name] = failure.message
    kept = {field.name for field in fields.FIELDS[noun] if not field.optional}
    errors |= {name: REQUIRED for name, value in sent.items() if value is None and name in kept}
    model, found = check(schema, sent, {"now": now})
    for place, fault in (found | schema.check_against_store(sent, found)).items():
        errors.setdefault(place.partition(".")[0], fault)
    return {} if model is None else fields.changes(noun, model.model_dump(exclude_unset=True)), errors


def faults(noun: str, texts: Mapping[str, str], schema: type[Body], *, now: int) -> Errors:
    """Return a message for each field that is invalid whatever the database contains."""
    sent: dict[str, Any] = {}
    errors: Errors = {}
    for field in fields.FIELDS[noun]:
        if field.name in texts and field.noun is None:
            try:
                sent[field.name] = field.parse(texts[field.name])
            except Failure as failure:
                errors[field.name] = failure.message
            else:
                errors |= {field.name: REQUIRED} if sent[field.name] is None and not field.optional else {}
    for place, fault in check(schema, sent, {"now": now})[1].items():
        errors.setdefault(place.partition(".")[0], fault)
    return errors
