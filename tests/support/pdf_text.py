"""The text of a PDF document."""

from __future__ import annotations

import io

import pypdf


def printed(document: bytes, pages: int | None = None) -> str:
    """Return the text of a PDF document, or of its first pages, with single blanks."""
    chosen = pypdf.PdfReader(io.BytesIO(document)).pages[:pages]
    return " ".join(" ".join(page.extract_text() for page in chosen).split())


def in_print(figure: float | None) -> str:
    """Return a figure or a growth as the report prints it."""
    if figure is None:
        return "\u2013"
    if isinstance(figure, int):
        return f"{figure:,}"
    sign = "+" if figure > 0 else "\u2212" if figure < 0 else ""
    return f"{sign}{abs(figure):,.1f} %"
