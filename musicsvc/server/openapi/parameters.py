"""Describe path and query parameters in the OpenAPI document."""

from collections.abc import Iterator

from musicsvc.server.openapi.models import SchemaGenerator, describe_default
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.fields import MAX_ID, Pages, Query
from musicsvc.server.shapes.envelope import JSON

SIZE = "perPage"


def parameters(route: Route) -> list[JSON]:
    return [_of_path(route, name) for name in route.parameters] + (list(_of_query(route.query)) if route.query else [])


def _of_path(route: Route, name: str) -> JSON:
    given = route.example.get(name)
    if route.subject is None or not route.subject.by_id:
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


def _of_query(query: type[Query]) -> Iterator[JSON]:
    schema = query.model_json_schema(schema_generator=SchemaGenerator)
    for name, field in schema["properties"].items():
        part = describe_default(field)
        names = [name, *(other for other, first in query.other_names.items() if first == name)]
        if issubclass(query, Pages) and name == SIZE:
            names.sort(key=lambda each: each != query.size_name)
        needed = name in schema.get("required", ())
        yield _in_query(names[0], part, required=needed and len(names) == 1)
        for other in names[1:]:
            yield _other_name(other, names[0], part, needed=needed)


def _other_name(name: str, first: str, schema: JSON, *, needed: bool) -> JSON:
    """Describe the deprecated parameter `name`, an alias of `first`. `needed`: a request must have one of the two."""
    bounds = {key: value for key, value in schema.items() if key != "examples"}
    rule = f"Another name of `{first}`; give {'one' if needed else 'at most one'} of the two."
    return _in_query(name, {**bounds, "description": rule}) | {"deprecated": True}


def _in_query(name: str, schema: JSON, *, required: bool = False) -> JSON:
    bounds = {key: value for key, value in schema.items() if key not in {"description", "examples"}}
    made: JSON = {"name": name, "in": "query", "required": required, "schema": bounds}
    if "description" in schema:
        made["description"] = schema["description"]
    if "examples" in schema:
        made["example"] = schema["examples"][0]
    return made
