"""Draw avatars as PNG: the initials of a name on a colour. The same name and seed always give the same picture."""

from typing import NamedTuple

import regex

from musicsvc.reports import typesetting, writing
from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs import canvas

SIDE, SMALL_SIDE = 256, 64  # pixels of an avatar, and of a thumbnail
NAMELESS = "♪"
INK = "#ffffff"
# The light and the dark end of a gradient; white text on it has a contrast of at least 4.5 to 1.
GROUNDS = (
    ("#c2410c", "#7c2d12"),
    ("#b91c4b", "#701a3f"),
    ("#a21caf", "#5b1380"),
    ("#7c3aed", "#43208f"),
    ("#4f46e5", "#2a2685"),
    ("#1d63d8", "#173b8a"),
    ("#0b74a8", "#0c4a6e"),
    ("#0e7c78", "#0b4a4c"),
    ("#15803d", "#14532d"),
    ("#5d7a12", "#3a4d0b"),
    ("#a16207", "#6b3f08"),
    ("#9a3b2b", "#57201a"),
    ("#64748b", "#334155"),
    ("#8a5a44", "#4e3226"),
)

_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}\u200c\u200d]*")
_LEADING_VOWELS = "เแโใไ"  # Thai vowels that are written before the first consonant
_ONE_IS_ENOUGH = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Devanagari}]")
_KEEP_APART = "\u2009"  # a thin space between two Arabic letters, which would join


class Design(NamedTuple):
    """The letters, the colours and the size of an avatar, which determine its picture."""

    initials: str
    light: str
    dark: str
    side: int = SIDE


def avatar(display_name: str, seed: int) -> bytes:
    """Return an account's avatar as PNG, 256 by 256 pixels. `seed` is the account's id and selects the colour."""
    return draw(design(display_name, seed))


def design(display_name: str, seed: int) -> Design:
    return Design(initials(display_name), *Chance("avatar", str(seed)).pick(GROUNDS))


def draw(design: Design) -> bytes:
    letters, light, dark, side = design
    # Drawn as SVG: Typst's own gradients take five times as long.
    ground = canvas.svg(
        f"<defs>{canvas.gradient('fall', light, dark, slope=(0.4, 1))}</defs>", canvas.ground("url(#fall)")
    )
    data = {"initials": letters, "rtl": writing.is_rtl(letters), "ground": ground, "ink": INK}
    return typesetting.png("avatar.typ", data, side / SIDE)


def initials(display_name: str) -> str:
    """Return the initials of the first and, in most scripts, the last word. Return NAMELESS if there are no words."""
    words = _WORD.findall(writing.drawable(display_name))
    if not words:
        return NAMELESS
    first, last = _initial(words[0]), _initial(words[-1])
    if len(words) == 1 or _ONE_IS_ENOUGH.match(first) or _ONE_IS_ENOUGH.match(last):
        return first
    return f"{first}{_KEEP_APART if writing.is_rtl(first) else ''}{last}"


def _initial(word: str) -> str:
    """Return the first grapheme of the word, in upper case if the fonts have the upper-case form."""
    sign = writing.graphemes(word.lstrip(_LEADING_VOWELS) or word)[0].rstrip("्")
    capital = sign.upper()
    return capital if len(capital) == len(sign) and writing.covered(capital) else sign
