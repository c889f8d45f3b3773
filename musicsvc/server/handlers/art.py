"""Pictures that the service draws: cover-art previews, their templates, avatars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from musicsvc.clock import DAY, SECOND
from musicsvc.errors import NotFound
from musicsvc.reports import avatars, covers
from musicsvc.server import signing
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.shapes.envelope import JSON, Download, Site, ok
from musicsvc.store import installation, users

if TYPE_CHECKING:
    from musicsvc.server.schemas.art import PreviewIn

PURPOSE = "cover-art preview"
SUFFIX = ".png"
GONE = "There is no such picture."


class Cover(NamedTuple):
    """A cover to be drawn; without a title the template's thumbnail."""

    template_id: int
    title: str
    artist: str
    max_age: int


class Avatar(NamedTuple):
    """An avatar to be drawn."""

    user_id: int
    display_name: str


def list_templates(site: Site) -> JSON:
    """List the designs for covers."""
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
    """Preview a cover: the answer names a picture that can be fetched for 24 hours."""
    value = [body.template_id, body.title, body.artist, (now + DAY) // SECOND]
    signed = signing.sign(installation.key(PURPOSE), value)
    return ok(preview_url=f"{site.root}/cover-art/previews/{signed}{SUFFIX}")


def show_preview(name: str, now: int) -> Cover:
    """Draw a cover again from its signed address."""
    signed, dot, kind = name.rpartition(".")
    try:
        template_id, title, artist, until = signing.verify(installation.key(PURPOSE), signed)
    except ValueError:
        raise NotFound(GONE) from None
    if dot + kind != SUFFIX:
        raise NotFound(GONE)
    left = until - now // SECOND
    if left <= 0:
        raise NotFound("This preview has ended. Ask for it again.")
    return Cover(template_id, title, artist, left)


def show_template(name: str) -> Cover:
    """Draw the thumbnail of a design."""
    template_id = parse_id(name.removesuffix(SUFFIX))
    if not name.endswith(SUFFIX) or template_id not in {template.id for template in covers.templates()}:
        raise NotFound(GONE)
    return Cover(template_id or 0, "", "", DAY // SECOND)


def show_avatar(id: str) -> Avatar:  # noqa: A002 - the parameter's name in the path
    """Draw the avatar of an account."""
    user_id = parse_id(id)
    if user_id is None:
        raise NotFound(GONE)
    return Avatar(user_id, users.get(user_id).display_name)


def draw(picture: Cover | Avatar) -> Download:
    """The picture as PNG; heavy, hence not within the unit."""
    if isinstance(picture, Avatar):
        return _png(avatars.avatar(picture.display_name, picture.user_id), 3600)
    if not picture.title:
        return _png(covers.thumbnail(picture.template_id), picture.max_age)
    return _png(covers.cover(picture.template_id, picture.title, picture.artist), picture.max_age)


def _png(content: bytes, max_age: int) -> Download:
    return Download(content, "image/png", {"Cache-Control": f"public, max-age={max_age}"})
