"""The fields of artists, albums and tracks that can be edited.

The API's bodies, the options of `musicsvc track edit` and the forms of pages have these fields, in this order.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

Form = Literal[
    "text", "paragraph", "date", "number", "length", "price", "yes or no", "artist", "artists", "album", "words"
]
YES_OR_NO: Mapping[str, bool] = {"yes": True, "no": False, "true": True, "false": False}
LENGTH = re.compile(r"(?:([0-9]{1,4}):)?([0-9]{1,4}):([0-5][0-9])(?:\.([0-9]{1,3}))?")
BREAK = re.compile(r"\r\n?|\n")
SECOND = 1_000  # of lengths, in milliseconds


def _parse_length(text: str) -> int:
    """Return the milliseconds of a text such as `3:45`, `1:02:03.5`, or of milliseconds."""
    if (found := LENGTH.fullmatch(text)) is None:
        return int(text)
    hours, minutes, seconds, rest = found.groups(default="0")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * SECOND + int(rest.ljust(3, "0"))


def _show_length(milliseconds: int) -> str:
    minutes, seconds = divmod(milliseconds // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    whole = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{whole}.{milliseconds % SECOND:03}".rstrip("0") if milliseconds % SECOND else whole


def _split(text: str, separator: str) -> list[str]:
    return [part for part in map(str.strip, text.split("\n" if "\n" in text else separator)) if part]


def _parse_artists(text: str) -> list[int | str]:
    """Return ids, and names of artists whose ids are not given."""
    parts = _split(text, ",")
    parts = parts if all(map(str.isdecimal, parts)) else _split(text, ";")
    return [int(part) if part.isdecimal() else part for part in parts]


def _show_each(values: Iterable[str]) -> str:
    """Return a line for each value, which separates them whatever they contain."""
    return "".join(f"{value}\n" for value in values)


def _show_line(text: str) -> str:
    """Return the text as browsers show it in a line."""
    return BREAK.sub("", text)


class Typing(NamedTuple):
    """The rules for texts of a form: parsing, which may raise ValueError, its reverse, and a hint for people."""

    parse: Callable[[str], Any] = str.strip
    show: Callable[[Any], str] = _show_line
    hint: str = ""


TYPING: Mapping[Form, Typing] = {
    "text": Typing(),
    "paragraph": Typing(show=lambda text: BREAK.sub("\n", text)),
    "date": Typing(),
    "number": Typing(int, str),
    "length": Typing(_parse_length, _show_length, "such as 3:45, or in milliseconds"),
    "price": Typing(float, lambda price: repr(price).removesuffix(".0")),
    "yes or no": Typing(
        lambda text: YES_OR_NO.get(text.lower(), text), lambda value: "yes" if value else "no", "yes or no"
    ),
    "artist": Typing(lambda text: int(text) if text.isdecimal() else text, hint="id or name"),
    "artists": Typing(_parse_artists, _show_each, "ids separated by commas or names by semicolons"),
    "album": Typing(lambda text: int(text) if text.isdecimal() else text, hint="id or name"),
    "words": Typing(lambda text: _split(text, ";"), _show_each, "separated by semicolons"),
}


class Field(NamedTuple):
    """A field of a body of the API, how people type its value, and its title. Only an `optional` one can be empty.

    `hint`: how its value is written, if its form does not say it. Several artists or words (`form`) have a line each;
    in a single line, semicolons separate them.
    """

    name: str
    form: Form
    title: str
    optional: bool = True
    hint: str = ""

    @property
    def option(self) -> str:
        """The option of the command line, such as `--release-date`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def help(self) -> str:
        """The help text of the option."""
        return ", ".join(filter(None, (self.title, self.hint or TYPING[self.form].hint)))

    @property
    def noun(self) -> str | None:
        """The kind of rows whose ids the field has, if it has ids."""
        return {"artist": "artist", "artists": "artist", "album": "album"}.get(self.form)

    def parse(self, text: str) -> Any:
        """Return the value for the API that a person typed, or None for an empty text. Names stay in place of ids.

        Texts of another form are returned as they are, for the API's schema to refuse.
        """
        if not text.strip():
            return None
        with suppress(ValueError):
            return TYPING[self.form].parse(text.strip(" "))  # the end of a line separates values
        return text.strip()

    def show(self, value: Any) -> str:
        """Return the text that `parse` turns into the value."""
        return "" if value is None else TYPING[self.form].show(value)

    def differs(self, text: str, other: str) -> bool:
        """Return True unless both texts mean the same value."""
        return bool(self.parse(text) != self.parse(other))


DESCRIPTION = Field("description", "paragraph", "Description")
FIELDS: Mapping[str, tuple[Field, ...]] = {
    "artist": (
        Field("name", "text", "Name", optional=False),
        DESCRIPTION,
        Field("image_small", "text", "URL of an image"),
    ),
    "album": (
        Field("name", "text", "Name", optional=False),
        Field("artist_id", "artist", "First artist", optional=False),
        DESCRIPTION,
        Field("release_date", "date", "Release date"),
        Field("image", "text", "URL of the cover"),
        Field("tags", "words", "Tags"),
        Field("upc", "text", "UPC or EAN"),
        Field("label", "text", "Label"),
    ),
    "track": (
        Field("name", "text", "Name", optional=False),
        Field("duration", "length", "Length", optional=False),
        Field("artists", "artists", "Artists", optional=False),
        DESCRIPTION,
        Field("genre", "text", "Genre"),
        Field("image", "text", "URL of an image"),
        Field("release_date", "date", "Release date"),
        Field("album_id", "album", "Album"),
        Field("bpm", "number", "Beats per minute"),
        Field("key", "text", "Key", hint="such as C#"),
        Field("scale", "text", "Scale", hint="Major or Minor"),
        Field("price", "price", "Price"),
        Field("currency", "text", "Currency", optional=False, hint="ISO 4217"),
        Field("licensing_type", "text", "Licensing", optional=False),
        Field("exclusive_status", "text", "Exclusive licence", optional=False),
        Field("exclusive_price", "price", "Price of the exclusive licence"),
        Field("tags", "words", "Tags"),
        Field("isrc", "text", "ISRC"),
        Field("track_number", "number", "Number on its disc"),
        Field("disc_number", "number", "Number of the disc"),
        Field("explicit", "yes or no", "Explicit"),
    ),
}


def changes(noun: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body changes. None empties an optional field; other fields with None stay as they are."""
    kept = {field.name for field in FIELDS[noun] if not field.optional}
    return {name: value for name, value in body.items() if value is not None or name not in kept}
