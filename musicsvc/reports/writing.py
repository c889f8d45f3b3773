"""Convert text of any script to a form that the packaged fonts can draw, and find its typographic properties."""

import functools
import re
import unicodedata

import regex

from musicsvc.reports.typesetting import FOLDER

SIGN = "□"  # replaces graphemes that no font has

_CLUSTER = regex.compile(r"\X")
_JOINERS = "\u200c\u200d"  # characters that shape their neighbours and have no glyph
_INVISIBLE = regex.compile(rf"[[\p{{Default_Ignorable_Code_Point}}]--[{_JOINERS}]]", regex.VERSION1)
_MARK = r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
_STACK = regex.compile(rf"({_MARK}{{3}}){_MARK}+|(\p{{M}}{{4}})\p{{M}}+")  # higher stacks would leave the canvas
_NOTES = str.maketrans("♩♫♬", "♪♪♪")  # no font has the first three
_EMOJI = regex.compile(r"[\p{Extended_Pictographic}\p{Regional_Indicator}]")
_PILED = regex.compile(rf"{_MARK}{{2}}")
_TALL = regex.compile(r"[\p{Arabic}\p{Devanagari}\p{Thai}]")
_JOINED = regex.compile(r"[\p{Arabic}\p{Devanagari}]")
_LANGUAGES = (("th", "\\p{Thai}"), ("ja", "[\\p{Hiragana}\\p{Katakana}]"), ("ko", "\\p{Hangul}"), ("zh", "\\p{Han}"))


@functools.cache
def _coverage() -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each font that matches its characters (fonts/coverage.txt). Preferred fonts come first."""
    patterns = []
    for line in (FOLDER / "coverage.txt").read_text(encoding="ascii").splitlines():
        spans = [span.split("-") for span in line.split(":")[1].split()]
        marks = "".join(f"\\U{int(first, 16):08x}-\\U{int(last, 16):08x}" for first, last in spans)
        patterns.append(re.compile(f"[{marks}]+"))
    return tuple(patterns)


def covered(text: str) -> bool:
    return any(font.fullmatch(text) for font in _coverage())


def drawable(text: str) -> str:
    """Return the text with single spaces. Each grapheme that no font can draw is simplified, or replaced by SIGN.

    Emoji that no font has are left out.
    """
    seen = _STACK.sub(r"\1\2", _INVISIBLE.sub("", unicodedata.normalize("NFD", text)))
    drawn = "".join(map(_drawable, _CLUSTER.findall(unicodedata.normalize("NFC", seen))))
    return " ".join(drawn.split()) or SIGN


def _drawable(cluster: str) -> str:
    """Return the grapheme in a form that a font can draw: unchanged, simplified, without some marks, or SIGN.

    Return an empty string for an emoji that no font has.
    """
    visible = cluster.translate(dict.fromkeys(map(ord, _JOINERS)))
    if cluster[0].isspace():
        return " " if visible.isspace() else f" {SIGN}"
    if not visible:
        return ""
    if unicodedata.category(cluster[0])[0] == "M":
        return SIGN
    if covered(visible):
        return cluster
    compatible = unicodedata.normalize("NFKC", visible).translate(_NOTES)
    return compatible if covered(compatible) else _bare(visible)


def _bare(cluster: str) -> str:
    font = next((font for font in _coverage() if font.fullmatch(cluster[0])), None)
    if font is None:
        return "" if _EMOJI.match(cluster) else SIGN
    return cluster[0] + "".join(mark for mark in cluster[1:] if font.fullmatch(mark))


def graphemes(text: str) -> list[str]:
    """Split the text into graphemes: characters as a reader counts them."""
    return _CLUSTER.findall(text)


def is_rtl(text: str) -> bool:
    """Return True if the text runs from right to left. Its first letter with a direction decides."""
    strong = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in strong if kind in {"L", "R", "AL"}), "L") != "L"


def language(text: str) -> str:
    """Return the code of the language, such as `ja`, whose line-breaking rules fit the text."""
    return next((code for code, script in _LANGUAGES if regex.search(script, text)), "ar" if is_rtl(text) else "en")


def is_tall(text: str) -> bool:
    """Return True if the text needs more room between lines, because of its script or of stacked marks."""
    return bool(_TALL.search(text) or _PILED.search(unicodedata.normalize("NFD", text)))


def may_be_spaced(text: str) -> bool:
    """Return True if space may be added between letters. Scripts with joined letters forbid this."""
    return not _JOINED.search(text)
