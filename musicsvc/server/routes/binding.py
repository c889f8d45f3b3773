"""Inspects the signatures of a route's functions once at the start, instead of in every request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from musicsvc.errors import NotFound
from musicsvc.server.schemas.fields import parse_id

ME = "me"  # stands for the caller in a path
BoundFunction = Callable[[Mapping[str, Any]], Any]


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def bind(function: Callable[..., Any], names: Sequence[str] | None = None) -> BoundFunction:
    """Return a function that calls `function` with values from a mapping, chosen by the names of its parameters.

    `names`: the names of the parameters; by default, they are read from the signature.
    """
    names = parameters(function) if names is None else names
    return lambda sources: function(**{name: sources[name] for name in names})


class Subject:
    """Loads the object that a path names by id, as in `/playlists/7`, or by a text such as `me`."""

    def __init__(self, path: str, find: Callable[..., Any]) -> None:
        """`path`: such as `/playlists/{id}`. `find`: loads the object and, if called with the caller, checks access."""
        first, *rest = inspect.signature(find).parameters.values()
        self.by_id = first.annotation in (int, "int")
        self._actor = rest[0].name if rest else None
        self.depends_on_caller = bool(rest)
        self._find = find
        self._collection = path.partition("/{")[0].rpartition("/")[2]

    def load(self, text: str, *, caller: Any) -> Any:
        """Return the object with this id or text. Raises NotFound if there is none, Forbidden if access is denied."""
        value = parse_id(text) if self.by_id else text
        if value is None:
            raise NotFound("There is nothing at this path.")
        return self._find(value) if self._actor is None else self._find(value, **{self._actor: caller})

    def resource(self, text: str) -> str | None:
        """Return the object's name for logs, such as `playlists/7`. None if `text` is neither an id nor `me`."""
        known = parse_id(text) is not None or (text == ME and not self.by_id)
        return f"{self._collection}/{text}" if known else None
