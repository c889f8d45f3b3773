"""Draw Typst templates as PNG or PDF. Texts of users are passed as data, never as Typst code."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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


def pages(
    template: str, data: Mapping[str, object], pixels_per_point: float = 1.0, form: Literal["png", "pdf"] = "png"
) -> list[bytes]:
    """Return all pages of a template, filled with `data`, as PNG images. The GIL is released while they are drawn."""
    import typst  # noqa: PLC0415 - the same

    compiler = typst.Compiler(
        _source(template),
        root=TEMPLATES,
        font_paths=fonts(),
        sys_inputs={"data": orjson.dumps({**data, "fonts": FAMILIES}).decode()},
    )
    drawn = compiler.compile(format=form, ppi=POINTS_PER_INCH * pixels_per_point)
    return drawn if isinstance(drawn, list) else [drawn] if drawn else []


def pdf(template: str, data: Mapping[str, object]) -> bytes:
    """Return the template as one PDF. Raises ValueError if that is impossible."""
    [drawn] = pages(template, data, form="pdf")
    return drawn


def png(template: str, data: Mapping[str, object], pixels_per_point: float = 1.0) -> bytes:
    """Return the template of one page as PNG. Raises ValueError if it has more pages."""
    [picture] = pages(template, data, pixels_per_point)
    return picture
