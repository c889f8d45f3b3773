"""Inspects the signatures of a route's functions once at the start, instead of in every request."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from musicsvc.errors import NotFound
from musicsvc.server.schemas.fields import parse_id

ME = "me"  # stands for the caller in a path
NOW = "now"
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
        """`path`: such as `/playlists/{id}`. `find`: loads the object, with the time if it has a parameter `now`.

        If it has another parameter, that is the caller, whose access it checks.
        """
        first, *rest = inspect.signature(find).parameters.values()
        self.by_id = first.annotation in (int, "int")
        self._rest = {each.name: NOW if each.name == NOW else "caller" for each in rest}
        self.depends_on_caller = "caller" in self._rest.values()
        self.depends_on_time = NOW in self._rest
        self._find = find
        self._collection = path.partition("/{")[0].rpartition("/")[2]

    def load(self, text: str, *, sources: Mapping[str, Any]) -> Any:
        """Return the object with this id or text. Raises NotFound if there is none, Forbidden if access is denied.

        `sources`: `caller` and `now`.
        """
        value = parse_id(text) if self.by_id else text
        if value is None:
            raise NotFound("There is nothing at this path.")
        return self._find(value, **{name: sources[source] for name, source in self._rest.items()})

    def resource(self, text: str) -> str | None:
        """Return the object's name for logs, such as `playlists/7`. None if `text` is neither an id nor `me`."""
        known = parse_id(text) is not None or (text == ME and not self.by_id)
        return f"{self._collection}/{text}" if known else None
