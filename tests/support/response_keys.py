"""Checks the keys of responses against the schemas of their tier."""

from typing import Any

from pydantic import BaseModel


def check(value: Any, schema: type[BaseModel], place: str) -> None:
    """Assert that the value matches the schema, with the keys in the schema's order."""
    in_order(value, schema.model_validate(value), place)


def in_order(value: Any, model: Any, place: str) -> None:
    if isinstance(model, list):
        for one, each in zip(value, model, strict=True):
            in_order(one, each, place)
    elif isinstance(model, BaseModel):
        fields = type(model).model_fields
        aliases = {name: field.alias or name for name, field in fields.items()}
        assert list(value) == [aliases[name] for name in fields if name in model.model_fields_set], place
        for name in model.model_fields_set:
            in_order(value[aliases[name]], getattr(model, name), place)
