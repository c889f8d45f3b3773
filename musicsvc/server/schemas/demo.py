"""Requests and responses of the endpoints that exist in demo mode only."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from musicsvc.server.demo import faults, rules
from musicsvc.server.schemas.answers import Answer, Success
from musicsvc.server.schemas.fields import MAX_ID, TRIMMED, Body, Secret, Text, replace_null

LONGEST = 500  # characters of a fault, a path or a token
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


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
        description=f"One of: {faults.LISTED}.", examples=["503"]
    )
    probability: Annotated[float, Field(strict=True, ge=0, le=1), replace_null(1.0, float)] = Field(
        1.0, description="The share of the matching requests that get the fault."
    )
    count: Annotated[int, Field(strict=True, ge=1, le=MAX_ID)] | None = Field(
        None, description="How often the fault is injected; by default, without end.", examples=[3]
    )
    seed: Annotated[int, Field(strict=True, ge=0, le=MAX_ID), replace_null(rules.SEED, int)] = Field(
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
