"""Results of handlers of pages: a view to render, or a redirect. Lists begin with the newest row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SHOWN = 50  # rows of a page
SCOPES = {"read-write": "Read and write", "read": "Read only", "listen": "Listens only"}  # of tokens
WANTED = SHOWN + 1  # rows to ask the store for: one more tells that there are older ones


@dataclass(frozen=True, slots=True)
class View:
    """A page to render.

    `template`: a file in server/pages/templates; `values`: its variables. `part`: the block of the template that is
    sent alone if htmx asks. `status`: the status of a POST that shows a page, such as a secret shown only once.
    `again`: the answer to the same form if it is sent again, without the secret.
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    part: str | None = None
    status: int = 200
    again: Redirect | None = None


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

    def shown(self) -> FormState:
        """Return this state without the values, for forms whose handler decides which values are shown."""
        return FormState(self.action, {}, self.errors, self.message)


class Received(NamedTuple):
    """An uploaded file: the name that the user gave it, and its name in the folder of the account."""

    name: str
    stored_as: str


class Newest(NamedTuple):
    """One page of rows, newest first. `before`: an id or time; the next page has older rows. None on the last page."""

    rows: Sequence[Any]
    before: int | None


def newest_by_id(found: Sequence[Any], get_id: Callable[[Any], int]) -> Newest:
    """Return a page with the first SHOWN of the rows `found`, newest first. The next page begins after the last id."""
    shown = found[:SHOWN]
    return Newest(shown, get_id(shown[-1]) if len(found) > SHOWN else None)


def newest_by_time(found: Sequence[Any]) -> Newest:
    """Return a page with the first SHOWN of the rows `found`, newest first. The next page begins at an older time.

    Rows with the same time are on the same page, so that none of them is skipped between two pages.
    """
    if len(found) <= SHOWN:
        return Newest(found, None)
    older = found[-1].at
    shown = [row for row in found if row.at > older] or found
    return Newest(shown, shown[-1].at if shown is found else older + 1)
