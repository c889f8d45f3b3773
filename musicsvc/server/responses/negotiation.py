"""The request headers that choose the form of a response: gzip or not, 304 or not (RFC 9110, sections 12 and 13)."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, Self

from aiohttp import hdrs
from multidict import CIMultiDictProxy

from musicsvc.server.shapes.representation import Representation


class Negotiation(NamedTuple):
    """The encodings that a client accepts, and the entity tags of the responses that it has."""

    gzip: bool
    known_tags: frozenset[str]  # the values of If-None-Match, without `W/`

    @classmethod
    def of_headers(cls, headers: CIMultiDictProxy[str]) -> Self:
        lines = headers.getall(hdrs.IF_NONE_MATCH, ())
        tags = frozenset(part.strip().removeprefix("W/") for line in lines for part in line.split(","))
        return cls(_accepts_gzip(headers.getall(hdrs.ACCEPT_ENCODING, ())), tags)

    def entity_tag(self, tag: str, *, compressible: bool) -> str:
        """Return the ETag header for a body with the tag `tag`. It is different for each encoding of the body."""
        return f'"{tag}-gzip"' if self.gzip and compressible else f'"{tag}"'

    def size(self, answer: Representation) -> float:
        """Return the size of the body in the chosen encoding; infinity if it has not been compressed yet."""
        if not (self.gzip and answer.compressible):
            return len(answer.content)
        return inf if answer.packed is None else len(answer.packed)

    def is_known(self, entity_tag: str) -> bool:
        """Return whether the client already has the response with this ETag."""
        return entity_tag in self.known_tags or "*" in self.known_tags


def _accepts_gzip(given: Sequence[str]) -> bool:
    """Return whether `given`, the values of Accept-Encoding, allow gzip by name or by `*`."""
    weights: dict[str, float] = {}
    for part in ",".join(given).lower().split(","):
        coding, _, parameter = part.partition(";")
        weights[coding.strip()] = _weight(parameter)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
