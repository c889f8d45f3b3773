"""Checks of PNG files: pixels, differences, contrast of colours."""

import io

from PIL import Image, ImageChops

Box = tuple[int, int, int, int]


def opened(png: bytes) -> Image.Image:
    """Return the picture in RGB; raise if it is broken."""
    with Image.open(io.BytesIO(png)) as image:
        assert image.format == "PNG"
        return image.convert("RGB")


def difference(one: bytes, other: bytes) -> Box | None:
    """Return the box of all differences (left, top, right, bottom), None without any."""
    return ImageChops.difference(opened(one), opened(other)).getbbox()


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours `#rrggbb` by WCAG 2, from 1 to 21."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def hexadecimal(pixel: object) -> str:
    """Return the colour of an RGB pixel as `#rrggbb`."""
    assert isinstance(pixel, tuple)
    red, green, blue = pixel
    return f"#{red:02x}{green:02x}{blue:02x}"


def _luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
