"""Forms to edit artists, albums and tracks."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from musicsvc.server.schemas.fields import Query
from musicsvc.server.schemas.pages.form import Form
from musicsvc.server.schemas.pages.insights import FormId
from musicsvc.store.editing.fields import FIELDS, Field

WAS = "was."  # before the name of a field: its text when the form was shown


class NewQuery(Query):
    """The artist and the album that a new album or track is given, until others are typed."""

    artist: FormId = None
    album: FormId = None


class FieldsForm(Form):
    """Any fields, as texts (`read_texts`)."""

    model_config = ConfigDict(extra="allow", frozen=True)


def read_texts(noun: str, sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each field of a form. Several artists are in `artists.0`, `artists.1` and so on."""
    return {field.name: _joined(field, sent) for field in FIELDS[noun]}


def read_former(noun: str, sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the text that each field had when the form was shown."""
    return {field.name: sent.get(f"{WAS}{field.name}", "") for field in FIELDS[noun]}


def _joined(field: Field, sent: Mapping[str, Any]) -> str:
    if field.form != "artists":
        return str(sent.get(field.name, ""))
    start = f"{field.name}."
    places = {name.removeprefix(start): text for name, text in sent.items() if name.startswith(start) and text.strip()}
    return "".join(f"{text}\n" for _, text in sorted(places.items(), key=lambda item: (len(item[0]), item[0])))
