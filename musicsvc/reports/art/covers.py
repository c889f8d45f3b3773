"""Draw cover art from a template, a title and an artist. The same input always gives the same picture."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Literal

from musicsvc.reports import typesetting, wrapping, writing
from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs import arcs, aurora, blocks, cutouts, horizon, monogram, pulse, rings
from musicsvc.reports.designs.canvas import Area, Giant, Picture, Style

SIDE = 1000  # pixels of a cover
SIDES = range(16, 3001)
JPEG_QUALITY = 92
THUMBNAIL_SIDES = range(16, SIDE + 1)


@dataclass(frozen=True)
class Template:
    """A template for covers, with the function that draws it. The id is permanent, because it is part of URLs."""

    id: int
    name: str
    description: str
    draw: Callable[[Chance], Picture]
    sample: tuple[str, str]  # title and artist on its thumbnail


_TEMPLATES = (
    Template(1, "Horizon", "A sun behind ridges of hills.", horizon.draw, ("Last Light", "Mara Quint")),
    Template(2, "Blocks", "Plain figures above a calm field.", blocks.draw, ("Square One", "The Lathe Club")),
    Template(3, "Aurora", "Soft lights in a fine frame.", aurora.draw, ("Polar Night", "Ilse Brandt")),
    Template(4, "Pulse", "A sound wave bent to a ring.", pulse.draw, ("Heartbeat", "Kilo Volt")),
    Template(
        5,
        "Rings",
        "Lines like the rings of a tree, the text on a plain panel.",
        rings.draw,
        ("Slow Growth", "Elder & Ash"),
    ),
    Template(6, "Cut-outs", "Paper shapes in bright inks.", cutouts.draw, ("Paper Summer", "Lou Vance")),
    Template(7, "Arcs", "A band of stripes around the text.", arcs.draw, ("Long Drive", "The Amber Set")),
    Template(8, "Monogram", "The title's first letter as a shape.", monogram.draw, ("Quiet", "Noor Sahl")),
)


def templates() -> list[Template]:
    return list(_TEMPLATES)


def cover(template_id: int, title: str, artist: str, size: int = SIDE) -> bytes:
    """Return a cover as PNG. Raises KeyError for an unknown template, ValueError for a size that is not in SIDES."""
    if size not in SIDES:
        raise ValueError(f"a cover must have {SIDES.start} to {SIDES.stop - 1} pixels per side, not {size}")
    return _drawn(_template(template_id), title, artist, size / SIDE)


def flattened(png: bytes, form: Literal["JPEG", "PNG"]) -> bytes:
    """Return the picture without an alpha channel, because music shops refuse it. JPEGs keep full colour resolution."""
    from PIL import Image  # noqa: PLC0415 - only the command line needs it

    target = BytesIO()
    with Image.open(BytesIO(png)) as picture:
        picture.convert("RGB").save(target, form, quality=JPEG_QUALITY, subsampling=0, optimize=form == "JPEG")
    return target.getvalue()


def thumbnail(template_id: int, size: int = 250) -> bytes:
    """Return a sample cover as PNG. Raises KeyError for an unknown template, ValueError for a size out of range."""
    if size not in THUMBNAIL_SIDES:
        raise ValueError(f"a thumbnail must have {THUMBNAIL_SIDES.start} to {SIDE} pixels per side, not {size}")
    template = _template(template_id)
    return _drawn(template, *template.sample, size / SIDE)


def _template(template_id: int) -> Template:
    return {template.id: template for template in _TEMPLATES}[template_id]


def _drawn(template: Template, title: str, artist: str, scale: float) -> bytes:
    return typesetting.png("cover.typ", _page(template, writing.drawable(title), writing.drawable(artist)), scale)


def _page(template: Template, title: str, artist: str) -> dict[str, object]:
    picture = template.draw(Chance(template.name, title, artist))
    return {
        "svg": picture.svg,
        "giant": _giant(picture.giant, title) if picture.giant else None,
        "areas": [_area(area, title, artist) for area in picture.areas],
    }


def _giant(giant: Giant, title: str) -> dict[str, object]:
    return {"text": writing.graphemes(title)[0]} | asdict(giant)


def _area(area: Area, title: str, artist: str) -> dict[str, object]:
    """Return a text box with its texts, as input of the Typst template for covers.

    Texts are centred, or aligned with the side where the title begins.
    """
    texts = [_text(style, text) for style, text in ((area.title, title), (area.artist, artist)) if style]
    start = "right" if writing.is_rtl(title) else "left"
    return asdict(area) | {
        "title": texts[0],
        "artist": texts[1] if len(texts) > 1 else None,
        "across": "center" if area.across == "center" else start,
    }


def _text(style: Style, text: str) -> dict[str, object]:
    """Return a text and its style as input of the Typst template for covers.

    Scripts with tall letters get more space between lines.
    """
    language = writing.language(text)
    above, below, leading = (1.0, 0.37, 0.04) if writing.is_tall(text) else (0.78, 0.22, 0.12)
    return {
        **asdict(wrapping.wrapping(text)),
        **asdict(style),
        "tracking": style.tracking if writing.may_be_spaced(text) else 0,
        "rtl": writing.is_rtl(text),
        "language": language,
        "thai": language == "th",
        "above": above,
        "below": below,
        "leading": leading,
    }
