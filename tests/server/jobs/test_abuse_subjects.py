"""The resource of a call, from its path or body, and whether it can be private."""

import pytest

from musicsvc.server.routes.route import Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.catalog import AlbumIn, TrackIn
from musicsvc.server.schemas.fields import Body, Query
from musicsvc.server.schemas.messages import MessageIn
from musicsvc.server.schemas.playlists import PlaylistIn, PlaylistPut


@pytest.mark.parametrize(
    ("body", "sent", "resource"),
    [
        (MessageIn, {"conversation_id": 7, "message_text": "hello"}, "conversations/7"),
        (PlaylistPut, {"name": "Rags", "id": 9}, "playlists/9"),
        (PlaylistPut, {"name": "Rags"}, None),
        (AlbumIn, {"artist_id": 3}, "artists/3"),
        (TrackIn, {"album_id": 4, "artists": [1, 2]}, "albums/4 artists/1 artists/2"),
        (TrackIn, {"album_id": True, "artists": ["1", 2.0, 0, None, 2**53, {}]}, None),
        (TrackIn, {"artists": list(range(1, 51))}, " ".join(f"artists/{number}" for number in range(1, 51))[:128]),
        (TrackIn, [1], None),
        (PlaylistIn, {"id": 9}, None),
    ],
)
def test_a_body_names_the_resource_of_the_call(body: type[Body], sent: object, resource: str | None) -> None:
    assert body.get_resource(sent, {}) == resource


def nouns(route: Route) -> set[str]:
    """Return the kinds of resources that ids in the path, query and body of an endpoint refer to."""
    in_query = route.query is not None and route.query.resource is not Query.resource
    if route.family is Family.INSIGHTS and (route.parameters or in_query or (route.body and route.body.subjects)):
        return {"insights"}
    parts = route.path.split("/")
    in_path = {parts[at - 1] for at, part in enumerate(parts) if part.startswith("{")}
    return in_path | set(route.body.subjects.values() if route.body else ())


def test_the_table_of_endpoints_marks_what_can_be_private() -> None:
    private = {"playlists", "conversations", "collections", "insights", "notifications", "access-tokens"}
    private.add("pending-listens")
    assert [route for route in ROUTES if route.private] == [route for route in ROUTES if nouns(route) & private]
    assert {noun for route in ROUTES for noun in nouns(route)} >= private
