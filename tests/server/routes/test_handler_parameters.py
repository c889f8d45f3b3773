"""Each parameter of a handler has a source: the body, the query, the caller, the time and others."""

import inspect
from typing import Any

import pytest

from musicsvc.server.routes.route import Access, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.playlists import PlaylistIn, PlaylistPut
from tests.rights.table import endpoint

SOURCES = {
    "body",
    "query",
    "caller",
    "now",
    "site",
    "settings",
    "peer",
    "is_stopping",
    "read_metrics",
    "openapi_document",
    "tools",
    "llms_text",
    "subject",
    "prepared",
    "answer",
    "pictures",
    "credentials",
    "drawer",
    "drawn_reports",
    "temporary",
    "uploads",
    "received",
    "verified",
    "browser",
    "form",
    "kept",
    "activity_log",
    "backup_folder",
    "check_installation",
    "create_backup",
    "replay_token",
    "store",
}


@pytest.mark.parametrize("route", ROUTES, ids=endpoint)
def test_every_parameter_of_a_handler_has_a_source(route: Route) -> None:
    on_page = route.family is Family.PAGE
    there: dict[str, Any] = {
        "body": route.body,
        "query": route.query,
        "subject": route.find,
        "prepared": route.cost.prepare,
        "caller": route.access is not Access.OPEN or on_page,
        "verified": route.password,
        "received": route.upload,
        "browser": on_page,
        "form": on_page,
        "kept": on_page,
    }
    sources = {name for name in SOURCES if there.get(name, True)} | {*route.parameters}
    assert taken_by(route.handler) <= sources
    assert taken_by(route.cost.prepare) <= sources - {"subject", "prepared"}
    if route.find is not None:
        rest = [*inspect.signature(route.find).parameters][len(route.parameters) :]
        assert set(rest) <= {"actor", "now"}
        assert "actor" not in rest or route.access in {Access.TOKEN, Access.SESSION, Access.DEVELOPER, Access.ADMIN}
    if route.access is Access.PUBLIC:
        assert "caller" in taken_by(route.handler) or route.answer == route.public_answer


def taken_by(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) if function is not None else set()


def test_the_schemas_of_a_row_are_the_types_of_its_handler_unless_it_gives_others() -> None:
    def handle(body: PlaylistIn, query: Pages) -> None: ...

    found = Route("POST", "/things", handle)
    assert (found.body, found.query) == (PlaylistIn, Pages)
    other = Route("POST", "/things", handle, body=PlaylistPut)
    assert (other.body, other.query) == (PlaylistPut, Pages)
