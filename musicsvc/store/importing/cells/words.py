"""Cells with one of a few words: yes or no, keys, scales."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from musicsvc.store.importing.cells.blanks import unless_blank
from musicsvc.store.importing.cells.notations import Notation
from musicsvc.store.importing.cells.numbers import integer

NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
NOTE = re.compile(r"([A-Ga-g])([#♯b♭]?)(?:(m)|[ -]?((?i:maj|min)(?i:or)?))?")
WHEEL = re.compile(r"(0?[1-9]|1[0-2])(?:([ABab])|([md]))")  # the circle of fifths, as mixing programs number keys
FIFTH, CAMELOT, OPEN, TO_MAJOR = 7, 8, 1, 3  # A minor is 8A and 1m, and its relative major is C
SCALES = {"major": "Major", "maj": "Major", "1": "Major", "minor": "Minor", "min": "Minor", "0": "Minor"}
YES = "true yes y t x ja j wahr oui sí si sim explicit explizit e 1 on vrai ✓ ✔"
NO = "false no n f nein falsch non não none clean cleaned c edited 0 off faux ✗ ✘"
FLAGS: dict[str, bool | None] = {**dict.fromkeys(YES.split(), True), **dict.fromkeys(NO.split(), False)}
FLAGS |= dict.fromkeys(("explicit content", "explicit lyrics", "explicit version"), True)
FLAGS |= dict.fromkeys(
    ("not explicit", "non-explicit", "notexplicit", "nicht explizit", "explicitcontentedited", "clean version"), False
)
FLAGS |= dict.fromkeys(("noadviceavailable", "no advice available", "no_advice_available"), None)  # of DDEX
T = TypeVar("T")


class Key(str):
    """A note. `scale`: the one that was written with it."""

    __slots__ = ("scale",)
    scale: str | None


def _key(note: int, scale: str | None) -> Key:
    found = Key(NOTES[note % len(NOTES)])
    found.scale = scale
    return found


@unless_blank
def key(value: Any) -> Key | None:
    """Parse a musical key: a note name, also with its scale, or a number from 0 (C) to 11 (B). Returns None for -1.

    Raises ValueError for anything else.
    """
    found = str(value).strip()
    if match := NOTE.fullmatch(found):
        step = {"#": 1, "♯": 1, "b": -1, "♭": -1, "": 0}[match[2]]
        scale = "min" if match[3] else (match[4] or "")[:3].lower()
        return _key(NOTES.index(match[1].upper()) + step, SCALES.get(scale))
    if match := WHEEL.fullmatch(found):
        letter = match[2] or match[3]
        is_major = letter in "Bbd"
        fifths = int(match[1]) - (CAMELOT if match[2] else OPEN)
        return _key(NOTES.index("A") + FIFTH * fifths + TO_MAJOR * is_major, "Major" if is_major else "Minor")
    place = integer(value)
    if place is None or not -1 <= place < len(NOTES):
        raise ValueError("must be a note (C, C#, … B) or a number from 0 to 11")
    return None if place == -1 else _key(place, None)


@unless_blank
def flag(value: Any) -> bool | None:
    """Parse a truth value: a word of FLAGS, in any case. Returns None for a word that says nothing."""
    return _meaning(value, FLAGS, "true or false")


@unless_blank
def scale(value: Any) -> str:
    """Parse a scale. Returns `Major` (also for 1) or `Minor` (also for 0)."""
    return _meaning(value, SCALES, "Major or Minor, or 1 or 0")


def _meaning(value: Any, words: Mapping[str, T], expected: str) -> T:
    """Return what the word or the integer in a cell stands for."""
    found = integer(value)
    key = str(value).strip().lower() if found is None else str(found)
    if key not in words:
        raise ValueError(f"must be {expected}")
    return words[key]


FLAG_NOTATIONS = (
    Notation("yes", flag, " | ".join(f"{word} = true" for word in YES.split())),
    Notation("no", flag, " | ".join(f"{word} = false" for word in (*NO.split(), "not explicit", "nicht explizit"))),
    Notation("unknown", flag, "NoAdviceAvailable = ", source="DDEX"),
)
KEY_NOTATIONS = (
    Notation(
        "a note, with or without its scale",
        key,
        "C = C | f# = F# | B♭ = A# | Am = A | Bb minor = A#",
        source="rekordbox, Mixxx",
    ),
    Notation(
        "its place on the circle of fifths (Camelot, Open Key)",
        key,
        "8A = A | 08B = C | 1m = A | 2d = G",
        source="Mixed In Key, Traktor",
    ),
    Notation("a number from C upwards; -1 is none", key, "6 = F# | -1 = ", source="Spotify"),
)
SCALE_NOTATIONS = (
    Notation("a word", scale, "Major = Major | min = Minor"),
    Notation("a mode", scale, "1 = Major | 0 = Minor", source="Spotify"),
)
