"""Describe the responses of endpoints in the OpenAPI document."""

from pydantic import BaseModel

from musicsvc import errors as words
from musicsvc.errors import Failure
from musicsvc.server.access import rate_limits
from musicsvc.server.access.authentication import EXPIRY_HEADER
from musicsvc.server.openapi.models import Models, answers
from musicsvc.server.peer import REPLAYED
from musicsvc.server.responses.errors import body_of, headers_of, status_of
from musicsvc.server.responses.handling import APPLIED, IGNORED
from musicsvc.server.routes.route import JSON_MEDIA, Access, Family, Route, Runs
from musicsvc.server.schemas import errors
from musicsvc.server.schemas.reading import REQUIRED
from musicsvc.server.shapes.envelope import JSON, OCTETS
from musicsvc.store.accounts import tokens

CACHING = ("ETag", "Cache-Control", "Vary")
LIMITS = rate_limits.HEADERS  # on responses to requests with a rate limit; local requests have no rate limit
LINK = "Link"
OF_DEPRECATED = ("Deprecation", "Sunset", LINK)
OFTEN = (IGNORED, APPLIED, EXPIRY_HEADER, *LIMITS)
OPTIONAL = (*OFTEN, *OF_DEPRECATED, REPLAYED)
COMMON = ("X-Request-Id", *OFTEN)  # on any response, so described once for all endpoints
MEMBER = r'"[a-z_]+"(;[a-z]=[0-9]+)+'
MEMBERS = {"type": "string", "pattern": f"^{MEMBER}(, {MEMBER})*$"}
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
MEANINGS: dict[str, tuple[str, JSON]] = {
    "X-Request-Id": ("The id of the request.", TEXT | {"pattern": "^[A-Za-z0-9._~-]{1,128}$"}),
    "ETag": ("Identifies the content; send it back in `If-None-Match`.", TEXT | {"pattern": '^"[0-9a-z-]+"$'}),
    LINK: (
        'The next and previous page of a list, relative to the request; `rel="deprecation"`: what to use instead.',
        TEXT | {"examples": ['<?perPage=5&page=3>; rel="next", <?perPage=5&page=1>; rel="prev"']},
    ),
    "Deprecation": ("Since when the endpoint is deprecated, in seconds since 1970.", TEXT | {"pattern": "^@[0-9]+$"}),
    "Sunset": ("When the endpoint ends, as an HTTP date.", TEXT),
    "Cache-Control": ("Whether the response may be cached and revalidated by its `ETag`.", TEXT),
    "Vary": ("The request headers that the response depends on.", TEXT),
    "WWW-Authenticate": (
        '`Bearer`; for a token also `error="invalid_token"` and `error_description`: expired, revoked or unknown.',
        TEXT | {"pattern": '^Bearer( error="invalid_token", error_description="(unknown|expired|revoked)")?$'},
    ),
    IGNORED: (
        "Unknown query parameters and body fields of the request, which had no effect; the first ten.",
        TEXT | {"examples": ["query.perpage, body.bio"]},
    ),
    REPLAYED: ("`true` on the first response to a request, sent again.", TEXT | {"const": "true"}),
    APPLIED: ("`handling=strict` if the request has this preference.", TEXT | {"const": "handling=strict"}),
    EXPIRY_HEADER: ("When the token expires; sent in its last 14 days.", TEXT | {"format": "date-time"}),
    "Retry-After": ("Seconds to wait before the next try.", COUNT),
    "Allow": ("The methods that the path allows.", TEXT),
    "RateLimit-Policy": (
        "The rate limits of the request: `q` requests in `w` seconds.",
        MEMBERS | {"examples": ['"token";q=300;w=60']},
    ),
    "RateLimit": (
        "`r` more requests are allowed in the next `t` seconds. If `r` is 0, wait `t` seconds.",
        MEMBERS | {"examples": ['"token";r=299;t=60']},
    ),
    "X-RateLimit-Limit": ("Requests that the tightest rate limit allows in total.", COUNT | {"examples": [300]}),
    "X-RateLimit-Remaining": ("Requests that the tightest rate limit still allows.", COUNT | {"examples": [299]}),
    "X-RateLimit-Reset": (
        "Seconds in which the remaining requests may be sent, as `t` of `RateLimit`.",
        COUNT | {"examples": [60]},
    ),
}
PARAMETERS: JSON = {
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "required": False,
        "description": "`handling=strict` makes unknown parameters of the query and fields of the body errors.",
        "schema": TEXT,
        "example": "handling=strict",
    }
}
HEADERS: JSON = {
    name: {"description": text, "required": name not in OPTIONAL, "schema": schema}
    for name, (text, schema) in MEANINGS.items()
}


def references(*names: str) -> JSON:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


FILE = {"schema": {"type": "string", "format": "binary"}}
UNCHANGED = 304
TOO_MANY = 429
# An example of the OpenAPI document itself, the only JSON without a schema.
OUTLINE = {"openapi": "3.1.0", "info": {"title": "musicsvc", "version": "1.0.0"}, "paths": {}, "components": {}}
ODD = "Unlike other errors it always has this body, which the original specification fixes."
# The meaning of each failure, and an example of it.
FAILURES: tuple[tuple[str, Failure], ...] = (
    (
        "Malformed HTTP request or JSON body.",
        words.Malformed("The body is not valid JSON in UTF-8. See line 1, column 9."),
    ),
    (
        "The token is missing, invalid, expired or revoked; `WWW-Authenticate` gives the reason.",
        words.Unauthenticated(),
    ),
    (
        "Plain HTTP, a suspended account, an account without API access, or no right to the object.",
        words.Forbidden(tokens.NO_ACCESS),
    ),
    ("The object does not exist, or is private to another account.", words.NotFound()),
    ("The path does not support the method.", words.MethodNotAllowed(["GET", "HEAD"])),
    ("The body took too long to arrive.", words.TooSlow("The body did not arrive in time.")),
    (
        "Conflict with the current state of the object. With `Retry-After`: the same request is still running.",
        words.Conflict("The account is a collaborator already."),
    ),
    ("The body is too large.", words.TooLarge("The body is larger than 1 MiB.")),
    ("The body is not JSON.", words.UnsupportedMedia("Send JSON, with Content-Type: application/json.")),
    ("Invalid fields or parameters; `errors` names them all.", words.Invalid({"name": REQUIRED})),
    (
        "A rate limit is exceeded; the message names it.",
        words.TooMany("The limit of 300 requests a minute for this token is reached. Try again in 12 seconds.", 12),
    ),
    (
        "An internal error.",
        words.Failure("An internal error occurred. Report request 5d41402abc4b2a76 to the operator."),
    ),
    (
        "The database is unavailable, or there is no capacity. Nothing was changed, unless the message says otherwise.",
        words.Unavailable(),
    ),
)


def statuses(route: Route) -> list[int]:
    """Return the statuses documented for the endpoint. 405, 408 and 431 are described once, in the introduction."""
    given = {route.status, 400, 403, 429, 500, *route.docs.raises}
    if route.method == "GET":
        given.add(UNCHANGED)
    if route.access is not Access.OPEN:
        given.add(401)
    if route.parameters:
        given.add(404)
    if route.keyed:
        given.add(409)  # the same request is still running
    if route.body is not None:
        given |= {413, 415}
    if route.body is not None or route.query is not None or not route.demo:
        given.add(422)  # what is unknown, if the client prefers that
    if not (route.cost.runs in {Runs.NO_STORE, Runs.IN_TURN} and route.access is Access.OPEN):
        given.add(503)
    return sorted(given)


def responses(route: Route, models: Models) -> JSON:
    others = (status for status in statuses(route) if status != route.status)
    found = {str(status): {"$ref": f"#/components/responses/{_name(status, route.family)}"} for status in others}
    return {str(route.status): _success(route, models), **found}


def shared(models: Models) -> JSON:
    """Return the error responses and the 304 response that endpoints share, by component name."""
    made = {
        _name(UNCHANGED): {
            "description": "The content is unchanged: it still has the `ETag` in `If-None-Match`.",
            "headers": references(*CACHING, LINK),
        }
    }
    for family in (Family.GENERAL, Family.INSIGHTS):
        for meaning, failure in FAILURES:
            model = _model(failure, family)
            made[_name(status_of(failure), family)] = {
                "description": f"{meaning} {ODD}" if model is errors.Unauthenticated else meaning,
                "headers": references(*headers_of(failure), *(LIMITS if status_of(failure) == TOO_MANY else ())),
                "content": {
                    JSON_MEDIA: {
                        "schema": models.reference(model),
                        "example": body_of(failure, insights=family is Family.INSIGHTS),
                    }
                },
            }
    return made


def _success(route: Route, models: Models) -> JSON:
    caching = CACHING if UNCHANGED in statuses(route) else (REPLAYED,) if route.keyed else ()
    also = OF_DEPRECATED if route.deprecated is not None else (LINK,) if route.paged else ()
    if route.docs.media != JSON_MEDIA:  # generators that do not know the type of the file know the general one
        text = f"The file, as `{route.docs.media}`; as `{OCTETS}` if `Accept` is only that."
        return {
            "description": text,
            "headers": references(*caching, *also),
            "content": dict.fromkeys((OCTETS, route.docs.media), FILE),
        }
    return {
        "description": "Created." if route.status == 201 else "Success.",  # noqa: PLR2004 - CREATED
        "headers": references(*caching, *also),
        "content": {JSON_MEDIA: _content(route, models)},
    }


def _content(route: Route, models: Models) -> JSON:
    """Return the media type object of a successful response: schema, and examples with and without a token."""
    schemas = [models.reference(model) for model in answers(route)]
    if not schemas:
        return {"schema": {"type": "object"}, "example": OUTLINE}
    if len(schemas) == 1:
        return {"schema": schemas[0], "example": models.example(schemas[0])}
    tiers = zip(("with a token", "without a token"), schemas, strict=True)
    return {
        "schema": {"anyOf": schemas},
        "examples": {name: {"summary": name, "value": models.example(schema)} for name, schema in tiers},
    }


def _model(failure: Failure, family: Family) -> type[BaseModel]:
    if family is Family.INSIGHTS:
        return errors.InsightsError
    return errors.Unauthenticated if isinstance(failure, words.Unauthenticated) else errors.Error


def _name(status: int, family: Family = Family.GENERAL) -> str:
    word = "not_modified" if status == UNCHANGED else errors.CODES[status]
    name = "".join(part.capitalize() for part in word.split("_"))
    return f"Insights{name}" if family is Family.INSIGHTS and status != UNCHANGED else name
