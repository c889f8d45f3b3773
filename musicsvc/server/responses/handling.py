"""Names what a request has sent in vain, or makes errors of it if the client prefers that (RFC 7240)."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self

from musicsvc.server.schemas.fields import Body
from musicsvc.server.schemas.reading import shortened

IGNORED, APPLIED = "X-Ignored", "Preference-Applied"
MOST_NAMED, MOST_FIELDS = 10, 1000
PLACE = re.compile(r"(?:query|body)\.[A-Za-z0-9_.\[\]-]{1,64}+|body")
UNKNOWN = {"query": "This parameter is unknown.", "body": "This field is unknown."}
NO_BODY = "This request takes no body."


class Handling(NamedTuple):
    """The way to handle unknown parameters and fields: if `strict`, as errors, else they are ignored.

    `unknown`: the places of those that the request has, such as `query.perpage`, or `body` if it takes no body at all.
    """

    strict: bool = False
    unknown: Sequence[str] = ()

    def with_body(self, sent: Any, schema: type[Body]) -> Self:
        """Return the handling of a request with a body. `sent`: its JSON value, of which few unknown fields count."""
        known = schema.known_names()
        unknown = (f"body.{name}" for name in sent if name not in known) if isinstance(sent, dict) else ()
        return self._replace(unknown=(*self.unknown, *islice(unknown, MOST_FIELDS)))

    def errors(self) -> dict[str, str]:
        """Return a message for each unknown parameter and field if the handling is strict."""
        places = [place.partition(".") for place in self.unknown] if self.strict else []
        return {shortened(name) or of: UNKNOWN[of] if dot else NO_BODY for of, dot, name in places}

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a response without errors."""
        if self.strict:
            return {APPLIED: "handling=strict"}
        named = ", ".join(islice((place for place in self.unknown if PLACE.fullmatch(place)), MOST_NAMED))
        return {IGNORED: named} if named else {}


USUAL = Handling()  # of a request without unknown parameters
