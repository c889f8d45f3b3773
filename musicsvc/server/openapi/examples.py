"""Build example values of JSON schemas from the examples of their fields."""

from collections.abc import Mapping
from typing import Any

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
