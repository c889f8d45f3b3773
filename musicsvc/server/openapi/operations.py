"""One endpoint as the document has it, and the tags that endpoints go by."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from musicsvc.server.openapi.parameters import parameters
from musicsvc.server.openapi.responses import responses
from musicsvc.server.routes.route import JSON_MEDIA, Access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from musicsvc.server.openapi.models import Models
    from musicsvc.server.routes.route import Route
    from musicsvc.server.shapes.envelope import JSON

BEARER: JSON = {"bearer": []}
SECURITY: dict[Access, list[JSON]] = {Access.OPEN: [], Access.PUBLIC: [{}, BEARER], Access.TOKEN: [BEARER]}
CALLERS = {
    Access.OPEN: "Needs no token.",
    Access.PUBLIC: "Without a token the answer holds the public fields only.",
    Access.TOKEN: "Needs a token.",
}


def operation(route: Route, models: Models) -> JSON:
    """The Operation Object of a row of the table."""
    made: JSON = {
        "operationId": route.operation,
        "summary": summary(route).replace("`", ""),
        "description": " ".join([CALLERS[route.access], *beside(route)]),
        "tags": [noun(route)],
        "security": SECURITY[route.access],
        "parameters": parameters(route),
    }
    if route.body is not None:
        made["requestBody"] = {
            "required": any(field.is_required() for field in route.body.model_fields.values()),
            "content": {
                JSON_MEDIA: {"schema": models.of(route.body, "validation"), "example": body_example(route, models)}
            },
        }
    if route.extension:
        made["x-addition"] = True
    made["responses"] = responses(route, models)
    return made


def beside(route: Route) -> list[str]:
    """What the endpoint is held to beside the limit of its caller, in words."""
    limit = [] if route.limit is None else [f"Held to the limit `{route.limit.value}` too."]
    busy = "Heavy: answered 503 with `Retry-After` while too many requests of its kind are under way."
    return [*limit, *([busy] if route.heavy else [])]


def body_example(route: Route, models: Models) -> Any:
    """A body that can be sent as it stands; what the row says goes before what the schema says."""
    assert route.body is not None  # noqa: S101 - the caller has looked
    made = models.example(models.of(route.body, "validation"))
    return {name: route.example.get(name, part) for name, part in made.items()}


def summary(route: Route) -> str:
    """What the endpoint does: the first line of its handler's docstring."""
    return (inspect.getdoc(route.handler) or "").partition("\n")[0].removesuffix(".")


def tags(routes: Iterable[Route]) -> list[JSON]:
    """The tags in the table's order, each described by its handlers' module."""
    modules = dict.fromkeys(route.handler.__module__ for route in routes)
    return [{"name": name.rpartition(".")[2], "description": sys.modules[name].__doc__} for name in modules]


def noun(route: Route) -> str:
    """The tag that the endpoint goes by: the name of its handler's module."""
    return route.handler.__module__.rpartition(".")[2]
