"""Build the template variables of forms for artists, albums and tracks."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.pages import FormState
from musicsvc.store.catalog.fields import FIELDS, Field

MORE = 2  # empty lines for further artists
# The fields that forms begin with.
FIRST = ("name", "artists", "artist_id", "album_id", "isrc", "upc", "track_number", "disc_number")


class Texts(NamedTuple):
    """The texts of fields: as they are now, as they were typed, and as they were when the form was shown.

    `notes`: further texts to show beside some fields. `unknown`: by field, typed names of artists that do not exist.
    `created`: those that the user lets the form create.
    """

    now: Mapping[str, str]
    typed: Mapping[str, str]
    former: Mapping[str, str]
    notes: Mapping[str, str]
    unknown: Mapping[str, Sequence[str]]
    created: Collection[str]


def inputs(noun: str, texts: Texts, form: FormState, blank: Mapping[str, str]) -> JSON:
    """Return the fields of a form: `inputs`, and `sale`, which are folded unless one has an error or a value.

    `blank`: the texts of a new row.
    A field that the user changed keeps what was typed; the others show what they are now. `meanwhile`: the text that
    somebody else gave to a field that the user changed too. Only once the form has shown it, saving replaces it.
    """
    fields = sorted(FIELDS[noun], key=lambda field: FIRST.index(field.name) if field.name in FIRST else len(FIRST))
    shown = {field: _input(field, texts, form) for field in fields}
    sale = [field for field in fields if field.shown == "sale"]
    return {
        "inputs": [shown[field] for field in fields if field not in sale],
        "sale": [shown[field] for field in sale],
        "open": any(f.name in form.errors or f.differs(shown[f]["text"], blank[f.name]) for f in sale),
    }


def _input(field: Field, texts: Texts, form: FormState) -> JSON:
    now, typed, former = texts.now[field.name], texts.typed[field.name], texts.former[field.name]
    changed = field.differs(typed, former)
    shown = field.name in form.errors or not changed
    text = typed if changed else now
    return {
        "name": field.name,
        "form": field.form,
        "label": field.title,
        "hint": texts.notes.get(field.name, field.rule),
        "required": not field.optional and field.shown != "sale",  # browsers say nothing of folded ones
        "text": text,
        "lines": [*filter(None, text.split("\n")), *[""] * MORE],
        "former": now if shown else former,
        "meanwhile": now if changed and field.differs(now, former) and field.differs(now, typed) else None,
        "choices": _choices(field),
        "unknown": [(name, name in texts.created) for name in texts.unknown.get(field.name, ())],
    }


def _choices(field: Field) -> list[tuple[str, str]]:
    """Return the values of a field to choose from, with their labels, or an empty list."""
    choices = ("yes", "no") if field.form == "yes or no" else field.choices
    none = [("", "not given")] if choices and field.optional else []
    return none + [(each, _readable(each)) for each in choices]


def compared(noun: str, source: Mapping[str, str], target: Mapping[str, str], taken: Sequence[str]) -> list[JSON]:
    """Return the fields with a value in one of two rows. `taken`: those that the target gets from the source."""
    return [
        {
            "label": field.title,
            "values": [
                _readable(text) if field.choices else text.strip() for text in (source[field.name], target[field.name])
            ],
            "taken": field.name in taken,
        }
        for field in FIELDS[noun]
        if source[field.name] or target[field.name]
    ]


def _readable(choice: str) -> str:
    return choice.replace("_", " ")
