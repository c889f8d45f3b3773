"""Parameters of paths and queries."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from pydantic.json_schema import DEFAULT_REF_TEMPLATE

from musicsvc.server.openapi.models import Plain
from musicsvc.server.schemas.fields import MAX_ID, Pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.server.route import Route
    from musicsvc.server.schemas.fields import Query
    from musicsvc.server.shapes.envelope import JSON

SIZE = "perPage"
SIZE_NAMES = (SIZE, "per_page")
SHOWN = ("description", "examples", "default")


def parameters(route: Route) -> list[JSON]:
    """Those of the path, then those of the query."""
    return [_of_path(route, name) for name in route.parameters] + (list(_of_query(route.query)) if route.query else [])


def _of_path(route: Route, name: str) -> JSON:
    given = route.example.get(name)
    if not _takes_id(route):
        return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": given or "me"}
    noun = route.path.partition(f"/{{{name}}}")[0].rpartition("/")[2].removesuffix("s")
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The id of the {noun}.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_ID},
        "example": given or 1,
    }


def _takes_id(route: Route) -> bool:
    """Whether the subject is found by an id, as dispatch has it."""
    if route.find is None:
        return False
    first = next(iter(inspect.signature(route.find).parameters.values()))
    return first.annotation in (int, "int")


def _of_query(query: type[Query]) -> Iterator[JSON]:
    schema = query.model_json_schema(schema_generator=Plain, ref_template=DEFAULT_REF_TEMPLATE)
    for name, part in schema["properties"].items():
        if issubclass(query, Pages) and name == SIZE:
            yield from _sizes(part, query.size_name)
        else:
            yield _in_query(name, part, required=name in schema.get("required", ()))


def _sizes(schema: JSON, first: str) -> Iterator[JSON]:
    """The size of a page under both its names, the endpoint's own first."""
    (second,) = (name for name in SIZE_NAMES if name != first)
    yield _in_query(first, {**schema, "description": "How many rows a page holds."})
    other = {key: value for key, value in schema.items() if key != "default"}
    yield _in_query(second, {**other, "description": f"Another name of `{first}`; give one of the two."})


def _in_query(name: str, schema: JSON, *, required: bool = False) -> JSON:
    bounds = {key: value for key, value in schema.items() if key not in {"description", "examples"}}
    made: JSON = {"name": name, "in": "query", "required": required, "schema": bounds}
    if "description" in schema:
        made["description"] = schema["description"]
    if "examples" in schema:
        made["example"] = schema["examples"][0]
    return made
