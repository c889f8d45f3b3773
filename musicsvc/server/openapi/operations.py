"""Describe endpoints as operations of the OpenAPI document, with one tag per handler module."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from musicsvc.server.openapi.models import Models, SchemaGenerator, describe_default
from musicsvc.server.openapi.responses import responses
from musicsvc.server.peer import KEY
from musicsvc.server.routes.route import JSON_MEDIA, Access, Route
from musicsvc.server.schemas.fields import MAX_ID, Pages, Query
from musicsvc.server.shapes.envelope import JSON

SIZE = "perPage"
KEY_PARAMETER: JSON = {
    "name": KEY,
    "in": "header",
    "required": False,
    "description": "A name of your choice for this request. The same request with the same key within 24 hours is"
    " not executed again: it gets the first response, if that was successful and has at most 64 KiB.",
    "schema": {"type": "string", "pattern": '^("[!-~]{1,64}"|[!#-~][!-~]{0,63})$'},
}


def parameters(route: Route) -> list[JSON]:
    found = [*(_of_path(route, name) for name in route.parameters), *(of_query(route.query) if route.query else ())]
    return [*found, KEY_PARAMETER] if route.keyed else found


def _of_path(route: Route, name: str) -> JSON:
    given = route.docs.example.get(name)
    if route.subject is None or not route.subject.are_ids[route.parameters.index(name)]:
        return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": given or "me"}
    noun = route.path.partition(f"/{{{name}}}")[0].rpartition("/")[2].removesuffix("s")
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The id of the {noun.replace('-', ' ')}.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_ID},
        "example": given or 1,
    }


def of_query(query: type[Query]) -> Iterator[JSON]:
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
    rule = f"Another name for `{first}`; give {'one' if needed else 'at most one'} of the two."
    return _in_query(name, {**bounds, "description": rule}) | {"deprecated": True}


def _in_query(name: str, schema: JSON, *, required: bool = False) -> JSON:
    bounds = {key: value for key, value in schema.items() if key not in {"description", "examples"}}
    made: JSON = {"name": name, "in": "query", "required": required, "schema": bounds}
    if "description" in schema:
        made["description"] = schema["description"]
    if "examples" in schema:
        made["example"] = schema["examples"][0]
    return made


BEARER: JSON = {"bearer": []}
SECURITY: dict[Access, list[JSON]] = {
    Access.OPEN: [],
    Access.PUBLIC: [{}, BEARER],
    Access.TOKEN: [BEARER],
    Access.ACCOUNT: [BEARER],
}
CALLERS = {
    Access.OPEN: "Needs no token.",
    Access.PUBLIC: "Without a token the response has the public fields only.",
    Access.TOKEN: "Needs a token.",
    Access.ACCOUNT: "Needs a token; its account needs no API access.",
}


def operation(route: Route, models: Models) -> JSON:
    made: JSON = {
        "operationId": route.operation,
        "summary": summary(route).replace("`", ""),
        "description": " ".join([CALLERS[route.access], *capacity(route)]),
        "tags": [noun(route)],
        "security": SECURITY[route.access],
        "parameters": parameters(route),
    }
    if route.body is not None:
        made["requestBody"] = {
            "required": any(field.is_required() for field in route.body.model_fields.values()),
            "content": {
                JSON_MEDIA: {
                    "schema": models.reference(route.body, "validation"),
                    "example": body_example(route, models),
                }
            },
        }
    if route.deprecated is not None:
        made["deprecated"] = True
        made["description"] += f" Deprecated since {route.deprecated.since}; ends on {route.deprecated.ends}."
    if route.docs.extension:
        made["x-addition"] = True
    if route.demo:
        made["x-demo"] = True
    made["responses"] = responses(route, models)
    return made


def capacity(route: Route) -> list[str]:
    """Return a sentence about the endpoint's own rate limit and one about its limited capacity, if they apply."""
    limit = [] if route.limit is None else [f"Also has the rate limit `{route.limit.value}`."]
    busy = "Answered with 503 and `Retry-After` while too many requests of its kind are in progress."
    return [*limit, *([busy] if route.heavy else [])]


def body_example(route: Route, models: Models) -> Any:
    """Return an example of a request body. Values in `route.docs.example` replace the examples of the schema."""
    assert route.body is not None  # noqa: S101 - checked by the caller
    made = models.example(models.reference(route.body, "validation"))
    return {name: route.docs.example.get(name, part) for name, part in made.items()}


def sentence(route: Route) -> str:
    """Return the first line of the handler's docstring without what it raises."""
    doc = getattr(route.handler, "func", route.handler).__doc__ or ""  # of a handler with given arguments: its own
    return doc.partition("\n")[0].partition(" Raises ")[0].removesuffix(".")


def summary(route: Route) -> str:
    """Return the same with the noun in place of all three."""
    text = sentence(route)
    article = "an" if route.docs.noun.startswith("a") else "a"
    return text.replace("a track, album or artist", f"{article} {route.docs.noun}") if route.docs.noun else text


def tags(routes: Iterable[Route]) -> list[JSON]:
    """Return an OpenAPI tag for each module of handlers, in route order. The module's docstring describes it."""
    modules = dict.fromkeys(route.handler.__module__ for route in routes)
    return [{"name": name.rpartition(".")[2], "description": sys.modules[name].__doc__} for name in modules]


def noun(route: Route) -> str:
    """Return the tag of the endpoint: the name of its handler's module."""
    return route.handler.__module__.rpartition(".")[2]
