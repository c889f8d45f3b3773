"""Describe endpoints as tools of assistants (MCP): the rows of the table of endpoints that name a tool."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic.json_schema import models_json_schema

from musicsvc.server.openapi.models import SchemaGenerator
from musicsvc.server.openapi.operations import of_query, sentence
from musicsvc.server.routes.route import Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import MAX_ID
from musicsvc.server.schemas.insights import Period
from musicsvc.server.schemas.periods import Period as InPeriod
from musicsvc.server.schemas.periods import PeriodQuery, TimeframeQuery
from musicsvc.server.shapes.envelope import JSON
from musicsvc.store.plays.subjects import KINDS

KIND = {"type": "string", "enum": [*KINDS]}
FOUND = "As the tool find returns it."
PAGE = {"type": "string", "format": "uri", "description": "The page that shows the same."}


@lru_cache(maxsize=1)
def tools() -> Mapping[str, JSON]:
    """Return the description of each tool, by its name. Takes about 20 ms the first time."""
    found: dict[str, list[Route]] = {}
    for route in ROUTES:
        if route.docs.tool:
            found.setdefault(route.docs.tool, []).append(route)
    return {name: _tool(name, routes) for name, routes in found.items()}


def _tool(name: str, routes: Sequence[Route]) -> JSON:
    return {
        "name": name,
        "description": f"{sentence(routes[0])}.",
        "inputSchema": _input(routes[0]),
        "outputSchema": _output(routes),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


def _input(route: Route) -> JSON:
    """Describe the arguments: the subject of the path, and the parameters of the query."""
    assert route.query is not None  # noqa: S101 - tools have one
    number: JSON = {"type": "integer", "minimum": 1, "maximum": MAX_ID, "description": FOUND}
    properties: JSON = {"kind": KIND, "id": number}
    required = [*properties] if route.parameters else []
    properties = properties if route.parameters else {}
    long_names: JSON = {short: long for long, short in route.query.other_names.items()}
    query = PeriodQuery if issubclass(route.query, TimeframeQuery) else route.query  # tools have one name for it
    for each in of_query(query):
        if not each.get("deprecated"):
            name = str(long_names.get(each["name"], each["name"]))
            text = FOUND if name == "ids" else each.get("description")
            properties[name] = (KIND if name == "kind" else each["schema"]) | ({"description": text} if text else {})
            required += [name] if each["required"] or name in long_names.values() else []
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _output(routes: Sequence[Route]) -> JSON:
    """Describe the result: the data of the endpoints' answers, the period, and the link to a page."""
    data: list[Any] = [route.answer.model_fields["data"].annotation for route in routes if route.answer is not None]
    wanted: Any = [(model, "serialization") for model in dict.fromkeys((*data, Period))]
    refs, made = models_json_schema(wanted, ref_template="#/$defs/{model}", schema_generator=SchemaGenerator)
    found: Any = [refs[each] for each in wanted if each[0] in data]
    properties = {"data": found[0] if len(found) == 1 else {"anyOf": found}, "page": PAGE}
    if routes[0].query is not None and issubclass(routes[0].query, InPeriod):
        properties["period"] = refs[Period, "serialization"]
    return {"type": "object", "properties": properties, "required": [*properties], "$defs": made["$defs"]}
