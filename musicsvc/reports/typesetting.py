"""The door to Typst: a template of the package and data in, a PNG out; user text is only ever data."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import typst

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "fonts"
TEMPLATES = Path(__file__).parent / "templates"
# The order of fall-back. WenQuanYi is last: its own Arabic and Devanagari glyphs do not join.
FAMILIES = (
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Micro Hei",
)
POINTS_PER_INCH = 72


@functools.cache
def fonts() -> typst.Fonts:
    """The packaged fonts and no others, so that every machine draws the same; read once a process."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[FOLDER])


@functools.cache
def _source(name: str) -> bytes:
    return (TEMPLATES / name).read_bytes()


def _compiler(template: str, data: Mapping[str, object]) -> typst.Compiler:
    return typst.Compiler(
        _source(template),
        root=TEMPLATES,
        font_paths=fonts(),
        sys_inputs={"data": orjson.dumps({**data, "fonts": FAMILIES}).decode()},
    )


def pages(template: str, data: Mapping[str, object], pixels_per_point: float = 1.0) -> list[bytes]:
    """Every page of the template as PNG."""
    drawn = _compiler(template, data).compile(format="png", ppi=POINTS_PER_INCH * pixels_per_point)
    return drawn if isinstance(drawn, list) else [drawn] if drawn else []


def pdf(template: str, data: Mapping[str, object]) -> bytes:
    """The template as a PDF document, drawn outside the interpreter's lock."""
    drawn = _compiler(template, data).compile(format="pdf")
    if not isinstance(drawn, bytes):
        raise TypeError(f"{template} is no single document")
    return drawn


def png(template: str, data: Mapping[str, object], pixels_per_point: float = 1.0) -> bytes:
    """The one page of the template as PNG, drawn outside the interpreter's lock."""
    picture = _compiler(template, data).compile(format="png", ppi=POINTS_PER_INCH * pixels_per_point)
    if not isinstance(picture, bytes):
        raise TypeError(f"{template} has drawn more than one page")
    return picture
