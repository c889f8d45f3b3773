"""Endpoints of generated pictures: cover art, avatars and thumbnails."""

from functools import partial

from musicsvc.reports.art import avatars
from musicsvc.server.handlers import art
from musicsvc.server.routes.route import (
    EXTENSION,
    NO_STORE,
    UNDOCUMENTED,
    V1,
    Access,
    Cost,
    Family,
    RateLimit,
    Route,
    Runs,
)
from musicsvc.server.schemas.art import Preview, Templates
from musicsvc.store.plays.subjects import KINDS

OPEN, PLAIN = Access.OPEN, Family.PLAIN
PICTURES = {"avatars": avatars.SIDE, "thumbnails": avatars.SMALL_SIDE}
DRAWN = Cost(render=art.draw)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/cover-art/preview", art.preview, answer=Preview, limit=RateLimit.COVER_ART,
          cost=Cost(reads=True)),
    Route("GET", f"{V1}/cover-art/templates", art.list_templates, cost=NO_STORE, docs=EXTENSION, answer=Templates),
    Route("GET", "/cover-art/previews/{name}", art.show_preview, OPEN, family=PLAIN, docs=UNDOCUMENTED, cost=DRAWN),
    Route("GET", "/cover-art/templates/{name}", art.show_template, OPEN, family=PLAIN, docs=UNDOCUMENTED,
          cost=Cost(Runs.NO_STORE, render=art.draw)),
    Route("GET", "/avatars/{id}", art.show_avatar, OPEN, family=PLAIN, docs=UNDOCUMENTED, cost=DRAWN),
    *(Route("GET", f"/{name}/{noun}/{{id}}", partial(art.show_initials, kind, side), OPEN, family=PLAIN,
            docs=UNDOCUMENTED, cost=DRAWN) for noun, kind in KINDS.items() for name, side in PICTURES.items()),
)
# fmt: on
