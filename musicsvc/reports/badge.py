"""Draw a badge: a name, cut to a bounded width, and a number beside it, as an SVG picture."""

from html import escape
from unicodedata import combining, east_asian_width

LONGEST = 200  # pixels of the name
PAD, WIDE = 8, 12  # pixels
SLIM = frozenset("ijlftrI1.,:;'|!()[] ")
NO_XML = {0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{title}</title>
<rect width="{width}" height="20" fill="#414b57"/><rect x="{left}" width="{right}" height="20" fill="#0b6b57"/>
<g font-family="Verdana,sans-serif" font-size="11" fill="#fff">
<svg width="{left}" height="20"><text x="8" y="14">{name}</text></svg><text x="{at}" y="14">{number}</text>
</g></svg>
"""


def svg(name: str, number: str, title: str) -> bytes:
    """Return the badge. `title`: what it says, for those who do not see it."""
    shown = _cut(name.translate(NO_XML))
    left, right = sum(map(_width, shown)) + 2 * PAD, sum(map(_width, number)) + 2 * PAD
    texts = {"name": escape(shown), "number": escape(number), "title": escape(title.translate(NO_XML))}
    return BADGE.format(width=left + right, left=left, right=right, at=left + PAD, **texts).encode()


def _cut(name: str) -> str:
    width = 0
    for place, sign in enumerate(name):
        width += _width(sign)
        if width > LONGEST:
            return f"{name[:place]}…"
    return name


def _width(sign: str) -> int:
    """Return about how many pixels wide the sign is."""
    if combining(sign):
        return 0
    if east_asian_width(sign) in "WF" or sign in "MWmw%@":
        return WIDE
    return 5 if sign in SLIM else 8
