"""Binding of a route's functions to their arguments, done once, so that no request inspects a signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from musicsvc.errors import NotFound
from musicsvc.server.schemas.fields import parse_id

ME = "me"  # names the caller in a path
BoundFunction = Callable[[Mapping[str, Any]], Any]


def bind(function: Callable[..., Any]) -> BoundFunction:
    """Return the function in a form that takes its arguments by name from a mapping."""
    names = tuple(inspect.signature(function).parameters)
    return lambda sources: function(**{name: sources[name] for name in names})


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a path, such as the playlist of `/playlists/{id}`.

    `collection` is the segment before the parameter, `actor` the parameter of `find` that takes the caller.
    """

    find: Callable[..., Any]
    collection: str
    by_id: bool
    actor: str | None

    @classmethod
    def of_path(cls, path: str, find: Callable[..., Any]) -> Subject:
        """Read the type of the subject's parameter and the name of the actor's from the signature of `find`."""
        first, *rest = inspect.signature(find).parameters.values()
        collection = path.partition("/{")[0].rpartition("/")[2]
        return cls(find, collection, first.annotation in (int, "int"), rest[0].name if rest else None)

    def load(self, text: str, *, caller: Any) -> Any:
        """Return the subject with this text in the path. Raises NotFound, and Forbidden without a right to it."""
        value = parse_id(text) if self.by_id else text
        if value is None:
            raise NotFound("There is nothing at this path.")
        return self.find(value) if self.actor is None else self.find(value, **{self.actor: caller})

    def resource(self, text: str) -> str | None:
        """Return the subject's name for logs, as `playlists/7`. None for anything but an id or `me`, never logged."""
        known = parse_id(text) is not None or (text == ME and not self.by_id)
        return f"{self.collection}/{text}" if known else None
