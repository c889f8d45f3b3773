"""Generate the schemas of request bodies and responses for `#/components/schemas` of the OpenAPI document."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import orjson
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from musicsvc.server.routes.route import Route
from musicsvc.server.schemas import errors
from musicsvc.server.shapes.envelope import JSON


def example(schema: JSON, definitions: Mapping[str, JSON], name: str = "text") -> Any:
    """Return an example value of a JSON schema. `name`: the value of strings without an example."""
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "$ref" in schema:
        return example(definitions[schema["$ref"].rpartition("/")[2]], definitions, name)
    if "anyOf" in schema:
        return example(schema["anyOf"][0], definitions, name)
    return _of_type(schema, definitions, name)


def _of_type(schema: JSON, definitions: Mapping[str, JSON], name: str) -> Any:
    kind = schema.get("type", "object")
    if kind == "object":
        return {key: example(part, definitions, key) for key, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema["items"], definitions, name)]
    if kind in {"integer", "number"}:
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return False
    return name.ljust(schema.get("minLength", 0), "…")


REF = "#/components/schemas/{model}"
Mode = Literal["validation", "serialization"]


class SchemaGenerator(GenerateJsonSchema):
    """Generates JSON schemas. Omits titles, defaults of response fields, and defaults that are null or []."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the library's hook
        return False

    def normalize_name(self, name: str) -> str:
        """Return the model's name with only letters and digits: `PagedTrack` for `Paged[Track]`."""
        return re.sub("[^A-Za-z0-9]", "", name)

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return a model's schema. Responses may get further fields in a later version, so that none is closed."""
        made = super().model_schema(schema)
        if self.mode == "serialization":
            made.pop("additionalProperties", None)
        return made

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """Return a field's schema. Omit defaults of response fields, and defaults that are null or []."""
        made = super().default_schema(schema)
        if self.mode == "serialization" or made.get("default") in (None, []):
            made.pop("default", None)
        return made


class Models:
    """The JSON schemas of request bodies, responses and errors, by model name."""

    def __init__(self, routes: Iterable[Route]) -> None:
        wanted: dict[tuple[type[BaseModel], Mode], None] = {}
        for route in routes:
            if route.body is not None:
                wanted[route.body, "validation"] = None
            wanted |= {(model, "serialization"): None for model in answers(route)}
        wanted |= {(model, "serialization"): None for model in errors.ALL}
        self._refs, made = models_json_schema(list(wanted), ref_template=REF, schema_generator=SchemaGenerator)
        self.definitions: Mapping[str, JSON] = made["$defs"]
        for definition in self.definitions.values():
            definition.pop("title", None)
            properties = definition.get("properties", {})
            properties.update({name: describe_default(part) for name, part in properties.items()})

    def reference(self, model: type[BaseModel], mode: Mode = "serialization") -> JSON:
        return self._refs[model, mode]

    def example(self, schema: JSON) -> Any:
        return example(schema, self.definitions)


def describe_default(schema: JSON) -> JSON:
    """Move a field's default into its description, so that generated clients neither send nor require the field."""
    if "default" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "default"}
    text = f"{schema.get('description', '')} Default: {orjson.dumps(schema['default']).decode()}.".lstrip()
    return {**rest, "description": text}


def answers(route: Route) -> list[type[BaseModel]]:
    """Return the models of a successful response: first with a token, then without a token if that differs."""
    both = dict.fromkeys((route.answer, route.public_answer))
    return [model for model in both if model is not None]
