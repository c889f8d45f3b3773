"""The text of a PDF document."""

import io
from datetime import date

import pypdf


def printed(document: bytes, pages: int | None = None) -> str:
    """Return the text of a PDF document, or of its first pages, with single blanks."""
    chosen = pypdf.PdfReader(io.BytesIO(document)).pages[:pages]
    return " ".join(" ".join(page.extract_text() for page in chosen).split())


def in_print(figure: float | None, first_plays: date | None = None) -> str:
    """Return a figure or a growth as the report prints it. `first_plays`: the day that stands instead of the growth."""
    if first_plays is not None:
        return f"first plays {first_plays:%-d %b %Y}"
    if figure is None:
        return "\u2013"
    if isinstance(figure, int):
        return f"{figure:,}"
    sign = "+" if figure > 0 else "\u2212" if figure < 0 else ""
    return f"{sign}{abs(figure):,.1f} %"
