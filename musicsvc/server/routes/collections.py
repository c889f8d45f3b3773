"""Endpoints of collections, the private, named lists of tracks of an account."""

from musicsvc.server.handlers import collections
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.answers import Paged, one
from musicsvc.server.schemas.collections import Collection, CollectionIn, CollectionListed
from musicsvc.server.schemas.fields import Pages
from musicsvc.store.playlists.collections import get

ALL = f"{V1}/collections"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", ALL, collections.create, status=201, body=CollectionIn, answer=one("collection", Collection)),
    Route("GET", ALL, collections.index, query=Pages, extension=True, answer=Paged[CollectionListed]),
    Route("GET", f"{ALL}/{{id}}", collections.show, find=get, private=True, extension=True,
          answer=one("collection", Collection)),
)
# fmt: on
