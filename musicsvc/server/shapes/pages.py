"""Results of handlers of pages: a view to render, or a redirect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class View:
    """A page to render.

    `template`: a file in server/pages/templates; `values`: its variables. `part`: the block of the template that is
    sent alone if htmx asks. `status`: the status of a POST that shows a page, such as a secret shown only once.
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect to another page after a form was accepted. The next page shows the sentence `notice`, if any."""

    path: str
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIn(Redirect):
    """A redirect that starts a session. `session`: its id."""

    session: str = ""


@dataclass(frozen=True, slots=True)
class SignedOut(Redirect):
    """A redirect that removes the session from the browser."""


@dataclass(frozen=True, slots=True)
class FormState:
    """A rejected form: its path, the values that were typed except passwords, and the errors by field.

    `message`: an error of the whole form. A page that is shown for the first time has a FormState without values.
    """

    action: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None

    def of(self, action: str) -> FormState:
        """Return this state if it belongs to the form with the path `action`, otherwise an empty state.

        A page can have several forms, but only one of them was rejected.
        """
        return self if self.action == action else FormState()
