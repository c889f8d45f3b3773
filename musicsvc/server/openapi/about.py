"""What the document says of the whole API: the rules and limits that hold for every endpoint."""

from musicsvc.config import Limits
from musicsvc.server.schemas.fields import MAX_ID
from musicsvc.server.schemas.json_size import MAX_VALUES

LIMITS = Limits()

TOKENS = """\
A personal access token. Access is by invitation: once an account has it, a token is made in Account Settings,
Developers, or by the operator. Its value is shown once; it expires after 90 days.
"""

TEXT = f"""\
Every request carries `Authorization: Bearer <token>`, over HTTPS. Some endpoints answer without a token too, with
the public fields only; a token that is sent and not valid is refused there as well.

**Bodies** are JSON objects in UTF-8, at most 1 MiB and {MAX_VALUES:,} values (members of objects and items of
arrays, unknown ones included). Unknown fields are ignored. Strings are
trimmed (passwords and tokens are not) and lengths count code points after that; NUL characters are refused. Integers
are JSON integers; ids run from 1 to {MAX_ID}.

**Queries**: integers are plain digits, a parameter is given once, unknown parameters are ignored.

**Lists** come in pages: `page` from 1, and the size under `perPage` or `per_page`, 1 to 100, 20 by default. Past the
end `data` is empty.

**Answers** are JSON. Times are UTC, as `2026-01-31T12:00:00.000000Z`; lengths of tracks are milliseconds. What has
no value is null; keys are always there. A 200 to a GET has an `ETag`: sent back in `If-None-Match` it saves the body
(304). HEAD is answered as GET, without a body. Every answer has an `X-Request-Id`,
taken over from the request where it is up to 128 of `A-Z a-z 0-9 . _ ~ -`; name it to the operator
when something goes wrong.

**Limits**, where the operator has set no others (`300/minute` is 300 in a minute): `token` {LIMITS.token}, and
`address` {LIMITS.address} for requests without a valid token; beside these `register` {LIMITS.registrations} for an
address, `exports` {LIMITS.exports} and `cover_art` {LIMITS.cover_art} for a token. `RateLimit-Policy` names those that
held for a request, `RateLimit` tells how many remain (`r`) and for how many seconds (`t`), `X-RateLimit-*` the same of
the tightest. Past a limit comes 429, which counts nowhere: wait as many seconds as `Retry-After` says. 503 with
`Retry-After` says that there is no capacity for the request just now; it counts to no limit either.

**HTTPS**: answers over TLS carry `Strict-Transport-Security`.

**Errors** name every faulty field at once, in `errors`, by its place: `name`, `artists.0`. An address that does not
exist is 404; what belongs to somebody else is 403, or 404 where it is private. Any path can also answer, with the
same body: 405 to a method that it does not take (`Allow` lists those it does), 408 to a head or body that does not
arrive in time, 431 to a head that is too large.

**Tokens**: 401 says in `WWW-Authenticate` why a token is refused: `error_description` is `expired`, `revoked` or
`unknown`; without a token it is plain `Bearer`. In the last 14 days of a token every answer to it carries
`Token-Expires-At`.

Endpoints with `x-addition: true` go beyond the original specification of the API.
"""
