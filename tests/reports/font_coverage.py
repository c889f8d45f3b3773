"""The characters that the packaged fonts can draw, read from the fonts. Run it to update fonts/coverage.txt."""

import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from fontTools.ttLib import TTCollection, TTFont

from musicsvc.reports.typesetting import FAMILIES, FOLDER


def drawn_by(path: Path) -> set[int]:
    """Return the code points for which the font has a glyph with an outline."""
    font = TTCollection(path).fonts[0] if path.suffix == ".ttc" else TTFont(path)
    outlines = font["loca"]
    place = font.getReverseGlyphMap()
    return {
        code
        for code, name in font.getBestCmap().items()
        if outlines[place[name]] < outlines[place[name] + 1] and unicodedata.category(chr(code))[0] not in "CZ"
    }


def ranges(codes: Iterable[int]) -> str:
    """Return the code points as `0021-007E 00A1-00AC …`."""
    ordered = sorted(codes)
    gaps = [(before, after) for before, after in pairwise(ordered) if after != before + 1]
    starts = [ordered[0], *(after for _, after in gaps)]
    ends = [*(before for before, _ in gaps), ordered[-1]]
    return " ".join(f"{first:04X}-{last:04X}" for first, last in zip(starts, ends, strict=True))


def table() -> str:
    """Return a line for each family in the order of fallback, with the code points that all its weights can draw."""
    lines = []
    for family in FAMILIES:
        stem = "wqy" if family.startswith("WenQuanYi") else family.replace(" ", "") + "-"
        lines.append(f"{family}: {ranges(set.intersection(*map(drawn_by, FOLDER.rglob(stem + '*.tt?'))))}\n")
    return "".join(lines)


if __name__ == "__main__":
    (FOLDER / "coverage.txt").write_text(table(), encoding="ascii")
