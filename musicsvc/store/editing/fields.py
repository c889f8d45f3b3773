"""The fields of artists, albums and tracks that can be edited.

The API's bodies, the options of `musicsvc track edit` and the forms of pages have these fields, in this order.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

Form = Literal["text", "paragraph", "date", "number", "price", "yes or no", "id", "ids", "words"]
YES_OR_NO: Mapping[str, bool] = {"yes": True, "no": False, "true": True, "false": False}
PARSERS: Mapping[Form, Callable[[str], Any]] = {
    "text": str,
    "paragraph": str,
    "date": str,
    "number": int,
    "price": float,
    "yes or no": lambda text: YES_OR_NO.get(text.lower(), text),
    "id": int,
    "ids": lambda text: [int(each) for each in text.split(",")],
    "words": lambda text: [word for word in map(str.strip, text.split(";")) if word],
}


class Field(NamedTuple):
    """A field of a body of the API, how people type its value, and its help text. Only an `optional` one can be empty.

    `form`: several `ids` are separated by commas, several `words` by semicolons.
    """

    name: str
    form: Form
    title: str
    optional: bool = True

    @property
    def option(self) -> str:
        """The option of the command line, such as `--release-date`."""
        return f"--{self.name.replace('_', '-')}"

    def parse(self, text: str) -> Any:
        """Return the value for the API that a person typed, or None for an empty text.

        Texts of another form are returned as they are, for the API's schema to refuse.
        """
        text = text.strip()
        if not text:
            return None
        with suppress(ValueError):
            return PARSERS[self.form](text)
        return text


DESCRIPTION = Field("description", "paragraph", "Description")
FIELDS: Mapping[str, tuple[Field, ...]] = {
    "artist": (
        Field("name", "text", "Name", optional=False),
        DESCRIPTION,
        Field("image_small", "text", "URL of an image"),
    ),
    "album": (
        Field("name", "text", "Name", optional=False),
        Field("artist_id", "id", "Id of the first artist", optional=False),
        DESCRIPTION,
        Field("release_date", "date", "Release date"),
        Field("image", "text", "URL of the cover"),
        Field("tags", "words", "Tags, separated by semicolons"),
        Field("upc", "text", "UPC or EAN"),
        Field("label", "text", "Label"),
    ),
    "track": (
        Field("name", "text", "Name", optional=False),
        Field("duration", "number", "Length in milliseconds", optional=False),
        Field("artists", "ids", "Ids of the artists, separated by commas", optional=False),
        DESCRIPTION,
        Field("genre", "text", "Genre"),
        Field("image", "text", "URL of an image"),
        Field("release_date", "date", "Release date"),
        Field("album_id", "id", "Id of the album"),
        Field("bpm", "number", "Beats per minute"),
        Field("key", "text", "Key, such as C#"),
        Field("scale", "text", "Major or Minor"),
        Field("price", "price", "Price"),
        Field("currency", "text", "Currency (ISO 4217)", optional=False),
        Field("licensing_type", "text", "Licensing", optional=False),
        Field("exclusive_status", "text", "Exclusive licence", optional=False),
        Field("exclusive_price", "price", "Price of the exclusive licence"),
        Field("tags", "words", "Tags, separated by semicolons"),
        Field("isrc", "text", "ISRC"),
        Field("track_number", "number", "Number on its disc"),
        Field("disc_number", "number", "Number of the disc"),
        Field("explicit", "yes or no", "Explicit, yes or no"),
    ),
}


def changes(noun: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body changes. None empties an optional field; other fields with None stay as they are."""
    kept = {field.name for field in FIELDS[noun] if not field.optional}
    return {name: value for name, value in body.items() if value is not None or name not in kept}
