"""Builds the unit of work of a request: checks that need the database, then the handler."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp.web import BaseRequest

from musicsvc.errors import Invalid
from musicsvc.server.responses.large import encoded
from musicsvc.server.routes.route import Family, RateLimit, Route
from musicsvc.server.schemas.fields import Query
from musicsvc.server.schemas.parsed_body import ParsedBody
from musicsvc.server.schemas.reading import check_query

MISPLACED = "Must be sent in the body, not in the query."


def read_query(route: Route, request: BaseRequest, now: int) -> tuple[Query | None, dict[str, str]]:
    """Validate the query string. Return (query, no errors), or None and a message for each wrong parameter.

    Export endpoints take their fields from the body, so fields in the query string are errors there, not ignored.
    """
    if route.query is not None:
        return check_query(route.query, request.query.items(), now=now)
    if route.body is None or route.limit is not RateLimit.EXPORTS or route.family is not Family.INSIGHTS:
        return None, {}
    fields = {field.alias or name for name, field in route.body.model_fields.items()}
    return None, {name: MISPLACED for name in request.query if name in fields}


def build_unit(
    route: Route,
    values: Mapping[str, str],
    sources: Mapping[str, Any],
    parsed: ParsedBody | None,
    query_errors: dict[str, str],
) -> Callable[[], Any]:
    """Return a function that checks all fields and calls the handler. Call it in a transaction, perhaps repeatedly."""

    def unit() -> Any:
        subject = None
        if route.subject is not None:
            subject = route.subject.load(*values.values(), sources=sources)
        found = (parsed.errors if parsed is not None else {}) | query_errors
        if route.body is not None and parsed is not None and isinstance(parsed.sent, dict):
            found |= route.body.check_against_store(parsed.sent, found, subject)
        if found:
            raise Invalid(found)
        result = route.call_handler({**sources, **values, "subject": subject})
        # Reads are encoded here, off the event loop; writes after the unit of work, so as not to block other writes.
        return result if route.writes or route.render is not None else encoded(result)

    return unit


def page_size_name(route: Route, request: BaseRequest) -> str:
    """Return the name of the page-size parameter that the query uses, or the endpoint's usual name if it has none."""
    names = ("perPage", "per_page")
    return next((name for name in names if name in request.query), getattr(route.query, "size_name", names[0]))
