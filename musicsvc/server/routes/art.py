"""Endpoints of generated pictures: cover art, avatars and thumbnails."""

from functools import partial

from musicsvc.server.handlers import art
from musicsvc.server.routes.route import V1, Access, Family, RateLimit, Route
from musicsvc.server.schemas.art import Preview, PreviewIn, Templates
from musicsvc.store.plays.subjects import KINDS

OPEN, PLAIN = Access.OPEN, Family.PLAIN

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/cover-art/preview", art.preview, body=PreviewIn, reads=True, answer=Preview,
          limit=RateLimit.COVER_ART),
    Route("GET", f"{V1}/cover-art/templates", art.list_templates, no_store=True, extension=True, answer=Templates),
    Route("GET", "/cover-art/previews/{name}", art.show_preview, OPEN, family=PLAIN, undocumented=True,
          render=art.draw),
    Route("GET", "/cover-art/templates/{name}", art.show_template, OPEN, family=PLAIN, undocumented=True, no_store=True,
          render=art.draw),
    Route("GET", "/avatars/{id}", art.show_avatar, OPEN, family=PLAIN, undocumented=True, render=art.draw),
    *(Route("GET", f"/thumbnails/{noun}/{{id}}", partial(art.show_thumbnail, kind), OPEN, family=PLAIN,
            undocumented=True, render=art.draw) for noun, kind in KINDS.items()),
)
# fmt: on
