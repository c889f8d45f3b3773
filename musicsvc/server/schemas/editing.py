"""Validation of fields of artists, albums and tracks that people typed, by the schemas of the API."""

from collections.abc import Mapping, Sequence
from typing import Any

from musicsvc.errors import Failure
from musicsvc.server.schemas.catalog import AlbumEdit, AlbumIn, ArtistEdit, ArtistIn, TrackEdit, TrackIn
from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.reading import REQUIRED, Errors, check
from musicsvc.store.catalog import fields
from musicsvc.store.editing import row_texts, splitting

EDIT: Mapping[str, type[Body]] = {"artist": ArtistEdit, "album": AlbumEdit, "track": TrackEdit}
NEW: Mapping[str, type[Body]] = {"artist": ArtistIn, "album": AlbumIn, "track": TrackIn}
NO_LENGTH = "Must be a length such as 3:45, or in milliseconds."


def read(
    noun: str, texts: Mapping[str, str], schema: type[Body], *, now: int, manager_id: int | None = None
) -> tuple[dict[str, Any], Errors]:
    """Return the values that the texts of some fields mean, as the schema does, and a message for each invalid field.

    Call inside a transaction. Names in place of ids mean first what the account `manager_id` manages.
    """
    sent, errors = _parse(noun, texts, manager_id)
    model, found = check(schema, sent, {"now": now})
    _add(errors, found | schema.check_against_store(sent, found))
    return {} if model is None else fields.changes(noun, model.model_dump(exclude_unset=True)), errors


def faults(noun: str, texts: Mapping[str, str], schema: type[Body], *, now: int) -> Errors:
    """Return a message for each field that is invalid whatever the database contains."""
    ids = {field.name for field in fields.FIELDS[noun] if field.noun is not None}
    sent, errors = _parse(noun, {name: text for name, text in texts.items() if name not in ids}, None)
    _add(errors, check(schema, sent, {"now": now})[1])
    return errors


def fault_of_parts(texts: Sequence[str], *, now: int) -> str | None:
    """Return a message if an artist cannot be split into artists with these names, whatever the database contains."""
    if not splitting.FEWEST <= len(texts) <= splitting.MOST:
        return splitting.wrong_number(len(texts))
    return next(
        (fault for text in texts for fault in faults("artist", {"name": text}, NEW["artist"], now=now).values()), None
    )


def _parse(noun: str, texts: Mapping[str, str], manager_id: int | None) -> tuple[dict[str, Any], Errors]:
    """Return the values of the texts that can be parsed, and a message for each other one and each missing value."""
    sent: dict[str, Any] = {}
    errors: Errors = {}
    for field in fields.FIELDS[noun]:
        if field.name in texts:
            try:
                sent[field.name] = row_texts.find_ids(field, field.parse(texts[field.name]), manager_id)
            except Failure as failure:
                errors[field.name] = failure.message
            if field.form == "length" and isinstance(sent.get(field.name), str):
                errors[field.name] = NO_LENGTH
    missing = [field.name for field in fields.FIELDS[noun] if not field.optional and sent.get(field.name, "") is None]
    return sent, errors | dict.fromkeys(missing, REQUIRED)


def _add(errors: Errors, found: Errors) -> None:
    """Add what a schema found, unless the field has an error already. Faults of items count for the whole field."""
    for place, fault in found.items():
        errors.setdefault(place.partition(".")[0], fault)
