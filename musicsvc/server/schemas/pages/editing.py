"""Forms to edit artists, albums and tracks."""

from collections.abc import Mapping
from typing import Annotated, Any

import pydantic

from musicsvc.server.schemas.fields import PageNumber, QueriedId, Query, Text
from musicsvc.server.schemas.pages.form import Checkbox, Form
from musicsvc.server.schemas.pages.insights import FormId
from musicsvc.store.catalog.fields import FIELDS, Field
from musicsvc.store.editing.merging import Noun

LONGEST_PARTS = 16_000  # characters of all names of artists into which one is split
CREATE = "create."  # before the number of a name: an artist to create
WAS = "was."  # before the name of a field: its text when the form was shown


class NewQuery(Query):
    """The artist and the album that a new album or track is given, until others are typed."""

    artist: FormId = None
    album: FormId = None


class TwinsQuery(Query):
    """The kind of twins to list."""

    kind: Noun = "artist"
    page: PageNumber = 1


class MergeQuery(Query):
    """The names or ids of two rows: `merge` is merged into the other."""

    merge: Annotated[str | None, Text(0, 300)] = None
    into: Annotated[str | None, Text(0, 300)] = None


class MergeForm(Form):
    """The ids of two rows: `merge` is merged into the other."""

    merge: QueriedId
    into: QueriedId


class SplitQuery(Query):
    """The name or id of an artist, and those of the artists into which it is split, one in a line."""

    artist: Annotated[str | None, Text(0, 300)] = None
    into: Annotated[str | None, Text(0, LONGEST_PARTS)] = None


class SplitForm(Form):
    """The name or id of an artist, and those of the artists into which it is split, one in a line.

    `preview`: show first what a split would do. A query would be too long for 50 long names.
    """

    artist: Annotated[str, Text(0, 300)]
    into: Annotated[str, Text(0, LONGEST_PARTS)] = ""
    preview: Checkbox = False


class FieldsForm(Form):
    """Any fields, as texts (`read_texts`)."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)


def read_texts(noun: str, sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each field of a form. Several artists are in `artists.0`, `artists.1` and so on."""
    return {field.name: _joined(field, sent) for field in FIELDS[noun]}


def read_created(sent: Mapping[str, Any]) -> set[str]:
    """Return the names of the artists that the user lets the form create, in `create.0`, `create.1` and so on."""
    return {text.strip() for name, text in sent.items() if name.startswith(CREATE)}


def read_parts(text: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def read_former(noun: str, sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the text that each field had when the form was shown."""
    return {field.name: sent.get(f"{WAS}{field.name}", "") for field in FIELDS[noun]}


def _joined(field: Field, sent: Mapping[str, Any]) -> str:
    if field.form != "artists":
        return str(sent.get(field.name, ""))
    start = f"{field.name}."
    places = {name.removeprefix(start): text for name, text in sent.items() if name.startswith(start) and text.strip()}
    return "".join(f"{text}\n" for _, text in sorted(places.items(), key=lambda item: (len(item[0]), item[0])))
