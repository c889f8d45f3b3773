"""Generated pictures: cover-art previews, templates, avatars and thumbnails."""

from functools import partial
from typing import Any, NamedTuple

from musicsvc.clock import DAY, SECOND
from musicsvc.errors import NotFound
from musicsvc.reports.art import avatars, covers
from musicsvc.reports.art.avatars import Design
from musicsvc.server.responses.drawer import Drawer
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.schemas.art import PreviewIn
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.shapes import signed_urls
from musicsvc.server.shapes.envelope import JSON, Download, Representation, Site, ok
from musicsvc.store import security
from musicsvc.store.accounts import users
from musicsvc.store.insights import figures
from musicsvc.store.plays.subjects import Subject

PURPOSE = "cover-art preview"
SUFFIX = ".png"
GONE = "There is no such picture."
AVATAR_MAX_AGE = 3600  # seconds


class Picture(NamedTuple):
    """A picture that is not drawn yet."""

    key: tuple[Any, ...]  # its kind (`reports/drawing.py`) and what determines it
    max_age: int  # seconds for which clients may cache the picture
    constant: bool = False  # keep the picture in the cache forever


def list_templates(site: Site) -> JSON:
    """List the templates for covers."""
    shaped = [
        {
            "id": template.id,
            "name": template.name,
            "description": template.description,
            "thumbnail": f"{site.root}/cover-art/templates/{template.id}{SUFFIX}",
        }
        for template in covers.templates()
    ]
    return ok(templates=shaped)


def preview(body: PreviewIn, site: Site, now: int) -> JSON:
    """Preview a cover: the response has the URL of a picture that is available for 24 hours."""
    value = [body.template_id, body.title, body.artist, (now + DAY) // SECOND]
    signed = signed_urls.sign(security.key(PURPOSE), value)
    return ok(preview_url=f"{site.root}/cover-art/previews/{signed}{SUFFIX}")


def show_preview(name: str, now: int, pictures: Drawings) -> Picture | Download:
    """Show the cover that a signed URL describes. Raises NotFound if it has expired or never existed."""
    signed, dot, kind = name.rpartition(".")
    try:
        template_id, title, artist, until = signed_urls.verify(security.key(PURPOSE), signed)
    except ValueError:
        raise NotFound(GONE) from None
    if dot + kind != SUFFIX:
        raise NotFound(GONE)
    left = until - now // SECOND
    if left <= 0:
        raise NotFound("This preview has expired. Request a new one.")
    return _cached_or_pending(Picture(("cover", template_id, title, artist), left), pictures)


def show_template(name: str, pictures: Drawings) -> Picture | Download:
    """Show the thumbnail of a cover template. Raises NotFound if there is none."""
    template_id = parse_id(name.removesuffix(SUFFIX))
    if not name.endswith(SUFFIX) or template_id not in {template.id for template in covers.templates()}:
        raise NotFound(GONE)
    thumbnail = Picture(("thumbnail", template_id), DAY // SECOND, constant=True)
    return _cached_or_pending(thumbnail, pictures)


def show_avatar(id: str, pictures: Drawings) -> Picture | Download:  # noqa: A002 - the parameter's name in the path
    """Show the avatar of an account."""
    user_id = _number(id)
    return _initials(avatars.design(users.get(user_id).display_name, user_id), pictures)


def show_initials(kind: int, side: int, id: str, pictures: Drawings) -> Picture | Download:  # noqa: A002 - as above
    """Show the avatar or thumbnail of a track, album or artist (`kind`). `side`: in pixels."""
    number = _number(id)
    design = avatars.design(figures.name(Subject(kind, number)), number)
    return _initials(design._replace(side=side), pictures)


def draw(drawing: Picture, pictures: Drawings, drawer: Drawer) -> Download:
    """Draw the picture, outside the transaction because it is slow."""
    drawn = pictures.draw(drawing.key, partial(drawer.draw, *drawing.key), constant=drawing.constant)
    return _png(drawn, drawing.max_age)


def _number(text: str) -> int:
    number = parse_id(text)
    if number is None:
        raise NotFound(GONE)
    return number


def _initials(design: Design, pictures: Drawings) -> Picture | Download:
    return _cached_or_pending(Picture(("avatar", design), AVATAR_MAX_AGE), pictures)


def _cached_or_pending(picture: Picture, pictures: Drawings) -> Picture | Download:
    """Return the picture as a response if it is in the cache. Otherwise return `picture`, to be drawn later."""
    kept = pictures.get(picture.key)
    return picture if kept is None else _png(kept, picture.max_age)


def _png(picture: Representation, max_age: int) -> Download:
    return Download.from_representation(picture, {"Cache-Control": f"public, max-age={max_age}"})
