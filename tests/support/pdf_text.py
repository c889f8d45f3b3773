"""The text of a PDF document."""

from __future__ import annotations

import io

import pypdf


def printed(document: bytes) -> str:
    """Return the text of a PDF document, with single blanks."""
    return " ".join(" ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(document)).pages).split())


def in_print(figure: float | None) -> str:
    """Return a figure or a growth as the report prints it."""
    if figure is None:
        return "\u2013"
    if isinstance(figure, int):
        return f"{figure:,}"
    sign = "+" if figure > 0 else "\u2212" if figure < 0 else ""
    return f"{sign}{abs(figure):,.1f} %"
