"""Texts that people type for the values of fields: their forms, how each is parsed, and how it shows a value."""

import re
from collections.abc import Callable, Iterable, Mapping
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


def is_id(text: str) -> bool:
    """Return whether a text in place of which a name may stand is an id. Digits of other scripts are a name."""
    return text.isascii() and text.isdigit()


def _id_or_name(text: str) -> int | str:
    return int(text) if is_id(text) else text


def _split(text: str, separator: str) -> list[str]:
    return [part for part in map(str.strip, text.split("\n" if "\n" in text else separator)) if part]


def _parse_artists(text: str) -> list[int | str]:
    """Return ids, and names of artists whose ids are not given."""
    parts = _split(text, ",")
    return [*map(_id_or_name, parts if all(map(is_id, parts)) else _split(text, ";"))]


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
    "artist": Typing(_id_or_name, hint="id or name"),
    "artists": Typing(_parse_artists, _show_each, "ids separated by commas or names by semicolons"),
    "album": Typing(_id_or_name, hint="id or name"),
    "words": Typing(lambda text: _split(text, ";"), _show_each, "separated by semicolons"),
}
