"""Requests and responses of the endpoints that exist in demo mode only."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from musicsvc import clock
from musicsvc.server.demo import faults, rules
from musicsvc.server.schemas.answers import Answer, Success, Timestamp
from musicsvc.server.schemas.fields import DIGITS_ONLY, MAX_ID, TRIMMED, Body, Query, Secret, Text, replace_null

LONGEST = 500  # characters of a fault, a path or a token
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Seed = Annotated[int, Field(strict=True, ge=0, le=MAX_ID)]


def _duration(text: Any) -> int:
    try:
        return clock.parse_duration(text)
    except (TypeError, ValueError):
        raise ValueError("Must be a duration such as 90s, 15m, 24h or 91d.") from None


def _time(text: Any) -> int:
    try:
        return clock.parse(text)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("Must be a time such as 2026-01-31T12:00:00Z.") from None


def _known(text: str) -> str:
    faults.parse(text)
    return text


class MatchIn(Body):
    """The requests that a rule concerns. Absent fields match all."""

    method: Annotated[Method, TRIMMED] | None = Field(None, examples=["POST"])
    route: Annotated[str, Text(1, LONGEST)] | None = Field(
        None, description="A path as in this document.", examples=["/api/v1/plays"]
    )
    token: Annotated[Secret, Field(min_length=1, max_length=LONGEST)] | None = Field(
        None, description="The value of a token.", examples=["msvc_the-value-of-a-token"]
    )


class FaultIn(Body):
    """A rule that injects a fault into requests."""

    match: Annotated[MatchIn, replace_null(MatchIn(), MatchIn)] = Field(default_factory=MatchIn)
    fault: Annotated[str, Text(1, LONGEST), AfterValidator(_known)] = Field(
        description=f"One of: {faults.LISTED}.", examples=["503"], json_schema_extra={"pattern": faults.PATTERN}
    )
    probability: Annotated[Share, replace_null(1.0, Share)] = Field(
        1.0, description="The share of the matching requests that get the fault."
    )
    count: Annotated[int, Field(strict=True, ge=1, le=MAX_ID)] | None = Field(
        None, description="How often the fault is injected; by default, without end.", examples=[3]
    )
    seed: Annotated[Seed, replace_null(rules.SEED, Seed)] = Field(
        rules.SEED, description="The same seed gives the same run."
    )


class FaultMatch(Answer):
    """The requests that a rule concerns; null: all. Only the last characters of a token are shown."""

    method: str | None
    route: str | None = Field(examples=["/api/v1/plays"])
    token: str | None = Field(examples=["…tokn"])


class FaultRule(Answer):
    """A rule, and how often it has injected its fault."""

    id: int
    match: FaultMatch
    fault: str = Field(examples=["503"])
    probability: float
    count: int | None
    seed: int
    injected: int


class FaultRules(Success):
    """A response with all rules, oldest first."""

    faults: list[FaultRule]


Duration = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,9}[smhd]$", "examples": ["91d"]}),
]
Instant = Annotated[
    int,
    BeforeValidator(_time),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2030-01-31T12:00:00Z"]}),
]


class ClockIn(Body):
    """The move of the clock: by a duration, or to a time, which is in UTC unless it has an offset."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"advance": "91d"}]})

    advance: Duration | None = None
    to: Instant | None = None

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], _context: Mapping[str, Any]) -> Any:
        """Return an error unless exactly one of the two fields is given."""
        given = [name for name in cls.model_fields if sent.get(name) is not None]
        if len(given) == 1 or faults:
            return {}
        return {"to": "Must not be given together with advance."} if given else {"advance": "Give this or `to`."}


class DemoClock(Answer):
    """The time of the demo, and how many times as fast as real time its clock runs."""

    now: Timestamp
    speed: float


class DemoSnapshot(Answer):
    """A snapshot, and the time of the demo when it was saved."""

    name: str = Field(examples=["before-sync"])
    now: Timestamp


class DemoSnapshots(Success):
    """A response with all snapshots, oldest first."""

    snapshots: list[DemoSnapshot]


class RequestsQuery(Query):
    """The requests to list."""

    since: Annotated[int, Field(ge=0, le=MAX_ID), DIGITS_ONLY] = Field(
        0, description="Only requests with a higher number, such as those since the last call."
    )


class InjectedFault(Answer):
    """A fault, and the header or the rule that has injected it."""

    fault: str = Field(examples=["503"])
    source: str = Field(examples=["rule 3"])


class RecordedAccount(Answer):
    """The account of a token."""

    id: int
    name: str = Field(examples=["Ada"])


class RecordedToken(Answer):
    """The token of a request; null for what is not known of it. `refusal`: unknown, revoked or expired."""

    id: int | None
    name: str | None = Field(examples=["laptop"])
    last_four: str | None = Field(examples=["tokn"])
    scope: str | None = Field(examples=["read-write"])
    valid: bool
    refusal: Literal["unknown", "revoked", "expired"] | None


class RecordedRequest(Answer):
    """A request that has ended, without secrets. Numbers ascend in the order in which requests end."""

    number: int
    at: Timestamp
    seconds: float = Field(description="The time that the response took.")
    method: str = Field(examples=["GET"])
    target: str = Field(description="Path and query.", examples=["/api/v1/albums?perPage=2"])
    route: str | None = Field(description="The path in this document; null: none.", examples=["/api/v1/albums"])
    status: int | None = Field(description="Null: no response was sent.", examples=[200])
    ended_by: Literal["demo", "client"] | None = Field(
        description="Who has closed the connection before the whole response was sent."
    )
    fault: InjectedFault | None
    request_id: str = Field(examples=["0651b1aa44a8fc0e4d7d21a3"])
    account: RecordedAccount | None
    token: RecordedToken | None
    headers: dict[str, str] = Field(examples=[{"User-Agent": "my-client/1.0"}])
    body: Any = Field(description="A JSON value; other bodies, and those of more than 16 KiB, as text.")
    body_bytes: int
    response_headers: dict[str, str] = Field(examples=[{"Content-Type": "application/json"}])
    message: str | None = Field(description="The message of a refusal.", examples=["Unauthenticated."])
    errors: dict[str, str] = Field(description="The errors of a refusal, by field.", examples=[{}])
    curl: str | None = Field(
        description="The request as a command line; the token is the variable TOKEN.",
        examples=['curl -i -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/api/v1/albums'],
    )


class RecordedRequests(Success):
    """A response with the last requests, newest first."""

    requests: list[RecordedRequest]


class CardRequest(Answer):
    """A request on the report card, as in `GET /demo/requests`."""

    number: int
    method: str = Field(examples=["GET"])
    target: str = Field(examples=["/api/v1/albums?perPage=2"])
    status: int | None = Field(examples=[200])
    curl: str | None = Field(examples=['curl -i -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/api/v1/albums'])


class CardViolation(Answer):
    """A fault of a client in words, and the requests that show it, oldest first."""

    text: str = Field(examples=["came back before the 2 s of Retry-After"])
    client: str = Field(examples=["token 1 (laptop)"], description="Its token; without one, its User-Agent.")
    requests: list[CardRequest]


class CardPoint(Answer):
    """A point of the report card."""

    name: str = Field(examples=["retry-after"])
    title: str = Field(examples=["Waits for Retry-After"])
    state: Literal["passed", "failed", "not tested"]
    violations: int
    first: list[CardViolation] = Field(description="The first 20 violations.")
    remedy: str = Field(description="What a client must do.", examples=["Wait the seconds in Retry-After."])
    occasion: str = Field(description="How to test it.", examples=["Inject a refusal."])


class DemoCard(Answer):
    """The report card: the share of passed points in percent, the number of evaluated requests, and all points."""

    score: int = Field(examples=[100])
    requests: int
    points: list[CardPoint]
