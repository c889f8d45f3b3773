"""Binding of a route's functions to their arguments, done once, so that no request inspects a signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from musicsvc.errors import NotFound
from musicsvc.server.schemas.fields import parse_id

ME = "me"  # names the caller in a path
BoundFunction = Callable[[Mapping[str, Any]], Any]


def bind(function: Callable[..., Any]) -> BoundFunction:
    """Return the function in a form that takes its arguments by name from a mapping."""
    names = tuple(inspect.signature(function).parameters)
    return lambda sources: function(**{name: sources[name] for name in names})


class Subject:
    """The subject of a path, such as the playlist of `/playlists/{id}`, found by an id or by a text such as `me`."""

    def __init__(self, path: str, find: Callable[..., Any]) -> None:
        """`find`: a store function. Its first parameter is the id or the text, an optional second one the caller."""
        first, *rest = inspect.signature(find).parameters.values()
        self.by_id = first.annotation in (int, "int")
        self._actor = rest[0].name if rest else None
        self._find = find
        self._collection = path.partition("/{")[0].rpartition("/")[2]

    def load(self, text: str, *, caller: Any) -> Any:
        """Return the subject with this text in the path. Raises NotFound, and Forbidden without a right to it."""
        value = parse_id(text) if self.by_id else text
        if value is None:
            raise NotFound("There is nothing at this path.")
        return self._find(value) if self._actor is None else self._find(value, **{self._actor: caller})

    def resource(self, text: str) -> str | None:
        """Return the subject's name for logs, as `playlists/7`. None for anything but an id or `me`, never logged."""
        known = parse_id(text) is not None or (text == ME and not self.by_id)
        return f"{self._collection}/{text}" if known else None
