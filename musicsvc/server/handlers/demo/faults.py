"""Rules that inject faults into the responses of the demo (in demo mode only)."""

from collections.abc import Collection

from musicsvc.errors import Invalid
from musicsvc.server.demo.rules import Match, Rule, Rules
from musicsvc.server.schemas.demo import FaultIn
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.shapes.envelope import JSON, ok, picked

SHOWN = 4  # last characters of a token


def create(body: FaultIn, rules: Rules, documented: Collection[str]) -> JSON:
    """Add a rule that injects a fault into the requests that it matches. Raises Invalid for an unknown path."""
    match = Match(body.match.method, body.match.route, body.match.token)
    if match.route is not None and match.route not in documented:
        raise Invalid({"match.route": "Must be a path of the OpenAPI document, such as /api/v1/albums/{id}."})
    rule = rules.add(match, body.fault, body.probability, body.count, body.seed)
    return ok(fault=_shape(rule))


def index(rules: Rules) -> JSON:
    """List the rules, and how often each has injected its fault."""
    return ok(faults=[_shape(rule) for rule in rules.list()])


def clear(rules: Rules) -> JSON:
    """Delete all rules."""
    rules.clear()
    return ok()


def delete(id: str, rules: Rules) -> JSON:  # noqa: A002 - the name of the path's parameter
    """Delete a rule."""
    rules.delete(parse_id(id) or 0)
    return ok()


def _shape(rule: Rule) -> JSON:
    token = rule.match.token
    match = picked(rule.match, "method", "route") | {"token": token and f"…{token[-SHOWN:]}"}
    return {"id": rule.id, "match": match} | picked(rule, "fault", "probability", "count", "seed", "injected")
