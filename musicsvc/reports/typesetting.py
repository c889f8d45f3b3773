"""Draw Typst templates as PNG or PDF. Texts of users are passed as data, never as Typst code."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    import typst

FOLDER = Path(__file__).parent / "fonts"
TEMPLATES = Path(__file__).parent / "templates"
# In the order of fallback. WenQuanYi comes late: its own Arabic and Devanagari glyphs do not join.
FAMILIES = (
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Micro Hei",
    "Noto Emoji",
)
POINTS_PER_INCH = 72


@functools.cache
def fonts() -> typst.Fonts:
    """Return the packaged fonts. System fonts are excluded, so that every machine draws the same pictures."""
    import typst  # noqa: PLC0415 - loaded when the first picture is drawn

    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[FOLDER])


@functools.cache
def _source(name: str) -> bytes:
    return (TEMPLATES / name).read_bytes()


def _compiler(template: str, data: Mapping[str, object]) -> typst.Compiler:
    import typst  # noqa: PLC0415 - the same

    return typst.Compiler(
        _source(template),
        root=TEMPLATES,
        font_paths=fonts(),
        sys_inputs={"data": orjson.dumps({**data, "fonts": FAMILIES}).decode()},
    )


def pages(template: str, data: Mapping[str, object], pixels_per_point: float = 1.0) -> list[bytes]:
    """Return all pages of a template as PNG images."""
    drawn = _compiler(template, data).compile(format="png", ppi=POINTS_PER_INCH * pixels_per_point)
    return drawn if isinstance(drawn, list) else [drawn] if drawn else []


def pdf(template: str, data: Mapping[str, object]) -> bytes:
    """Return the template, filled with `data`, as PDF. The GIL is released while it is drawn.

    Raises `TypeError` if the template makes several files.
    """
    drawn = _compiler(template, data).compile(format="pdf")
    if not isinstance(drawn, bytes):
        raise TypeError(f"Typst returned several files for {template}, where one PDF was expected.")
    return drawn


def png(template: str, data: Mapping[str, object], pixels_per_point: float = 1.0) -> bytes:
    """Return the template of one page, filled with `data`, as PNG. The GIL is released while it is drawn.

    Raises `TypeError` if the template has more pages.
    """
    picture = _compiler(template, data).compile(format="png", ppi=POINTS_PER_INCH * pixels_per_point)
    if not isinstance(picture, bytes):
        raise TypeError(f"{template} has more than one page, where one PNG was expected.")
    return picture
