"""The OpenAPI 3.1 document, built from the table of endpoints and the schemas of requests and responses."""

from functools import lru_cache

import orjson

import musicsvc
from musicsvc.config import Limits, Server
from musicsvc.server.demo import faults
from musicsvc.server.openapi import responses
from musicsvc.server.openapi.models import Models
from musicsvc.server.openapi.operations import operation, tags
from musicsvc.server.routes.demo import DEMO_ROUTES
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.routes.table import ROUTES
from musicsvc.server.schemas.fields import MAX_ID
from musicsvc.server.schemas.reading import MAX_VALUES
from musicsvc.server.shapes.envelope import JSON, JSON_TYPE, Representation, represent

LIMITS = Limits()

TOKENS = """\
A personal access token. API access is by invitation: an account that has it creates tokens under Account Settings,
[Developers]({root}/settings/developers), or the operator creates them. The value is shown once. A token expires after
90 days. A token of the scope `read` may GET, HEAD and make exports; every other request with it is 403.
"""

TEXT = f"""\
Send `Authorization: Bearer <token>` with every request, over HTTPS. Some endpoints also answer without a token, with
the public fields only; they too refuse an invalid token.

**Bodies** are JSON objects in UTF-8 of at most 1 MiB and {MAX_VALUES:,} values (members of objects and items of
arrays, including unknown ones). Strings are trimmed (except passwords and tokens), and
their length is the number of code points after that. Control characters other than tabs and line breaks are refused,
and a name needs a visible character. Integers are JSON integers; ids range from 1 to {MAX_ID}.

**Queries**: write integers in plain digits and each parameter once.

**Unknown** parameters of the query and fields of the body have no effect; `X-Ignored: query.perpage, body.bio` names
the first ten of them. With `Prefer: handling=strict` they are errors: 422, and nothing is done. Then the response has
`Preference-Applied: handling=strict`. Every endpoint takes this header.

**Lists** are paged: `page` counts from 1, `perPage` or `per_page` sets the size, 1 to 100, by default 20. Past the
last page `data` is empty. `Link` has the next and the previous page.

**Deprecated** endpoints say in `Deprecation` since when, in `Sunset` when they end, and in `Link` with
`rel="deprecation"` what to use instead.

**Responses** are JSON. Times are in UTC, as `2026-01-31T12:00:00.000000Z`; track lengths are in milliseconds. Every key
is always present, with null for a missing value. A 200 to a GET has an `ETag`; send it in `If-None-Match` to get a 304
without a body if nothing changed. HEAD is answered as GET, without a body. Every response has an `X-Request-Id`, taken
from the request if it has up to 128 of the characters `A-Z a-z 0-9 . _ ~ -`; report it with any problem.

**Rate limits**, unless the operator has changed them (`300/minute` is 300 requests in a minute): `token`
{LIMITS.token}, and `address` {LIMITS.address} for requests without a valid token; in addition `register`
{LIMITS.registrations} for an address, `exports` {LIMITS.exports} and `cover_art` {LIMITS.cover_art} for a token;
`sign_in` {LIMITS.sign_in} successful sign-ins for an account, and for a network.
`RateLimit-Policy` lists the limits of a request, `RateLimit` how many requests remain (`r`) for how many seconds (`t`),
`X-RateLimit-*` the same of the tightest limit. Beyond a limit the response is 429, which counts toward no limit: wait
the seconds in `Retry-After`. A 503 with `Retry-After` means that there is no capacity at the moment; it does not count
either. One that says that others wait counts toward `exports` or `cover_art`: you had as many requests under way as
you may while others wait.

**HTTPS**: responses over TLS carry `Strict-Transport-Security`.

**Errors** have one of three bodies:

| error | body |
|---|---|
| any but those below | `{{"status": "error", "message": "…", "errors": {{"artists.0": "…"}}}}` |
| 401 | exactly `{{"message": "Unauthenticated."}}` |
| any below `{INSIGHTS}`, 401 too | `{{"success": false, "message": "…", "error": "not_found"}}`; with `errors` on 422 |

`errors` lists all invalid fields at once, by their position: `name`, `artists.0`. The 401 has nothing else because the
original specification fixes this body; the reason is in `WWW-Authenticate`: `error_description` is `expired`, `revoked`
or `unknown`, and without a token the header is `Bearer`. A path or an object that does not exist is 404; an object of
another account is 403, or 404 if it is private. Any path can also answer 405 to a method that it does not allow
(`Allow` lists the others), 408 to a head or body that does not arrive in time, and 431 to a head that is too large.
Malformed HTTP, a late head and a large one get the first body on every path.

**Tokens** belong to servers and programs, not into the code of a web page, where every visitor can read them: without
one, such code gets the public fields. In the last 14 days of a token, every response to it carries `Token-Expires-At`.

Endpoints with `x-addition: true` go beyond the original specification of the API.
"""


DEMO_TEXT = f"""\
**This is a demo.** It prints its tokens when it starts. Endpoints with `x-demo: true` exist in demo mode only; they
need no token. The header `X-Demo-Fault` injects a fault into the response to any other request; `Prefer: code=429` does
so by its status. Faults are {faults.LISTED}. A response with a fault carries `X-Demo-Injected: header`, or `rule 3` if
a rule of `POST /demo/faults` has injected it. `POST /demo/clock` moves the time of the whole service, `POST
/demo/reset` goes back to the data and the time of its start, `/demo/snapshots` to those in between.
"""


DEFAULT_ROOT = f"http://{Server().host}:{Server().port}"


@lru_cache(maxsize=1)
def encoded_document(root: str, *, demo: bool = False) -> Representation:
    """Return the OpenAPI document as JSON bytes, with a gzip form. Cached. `root`: the base URL of the service."""
    return represent(orjson.dumps(document(root, demo=demo)), JSON_TYPE)


def document(root: str = DEFAULT_ROOT, *, demo: bool = False) -> JSON:
    """Build the OpenAPI document, which takes about 50 ms. `root`: the base URL of the service; `demo`: it is one."""
    shown = [route for route in (DEMO_ROUTES if demo else ROUTES) if not route.docs.undocumented]
    models = Models(shown)
    paths: JSON = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, models)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "musicsvc",
            "version": musicsvc.__version__,
            "summary": "A music catalog, playlist and creator-analytics API.",
            "description": f"{TEXT}\n{DEMO_TEXT}" if demo else TEXT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": root}],
        "tags": tags(shown),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": TOKENS.format(root=root)}
            },
            "headers": responses.HEADERS,
            "parameters": responses.PARAMETERS,
            "responses": responses.shared(models),
            "schemas": models.definitions,
        },
    }
