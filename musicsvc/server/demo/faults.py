"""The faults that the demo can inject into requests, and their notation, such as `503` or `slow=2s`."""

import math
import re
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

LONGEST_SECONDS = 60.0
MOST_PIECES = 1000
LARGEST_SIGMA = 10.0  # beyond it, delays are nothing or the longest
REFUSALS = ("401-expired", "401-revoked", "403", "404", "409", "413", "422", "429", "500", "503")
NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)"
DURATION = rf"{NUMBER}(ms|s)"
SLOW = re.compile(rf"slow={DURATION}")
VARYING = re.compile(rf"slow=lognormal\({DURATION}, ?{NUMBER}\)")
DRIBBLE = re.compile(rf"dribble=([1-9][0-9]{{0,3}})x{DURATION}")
PREFERRED = {"401": "401-expired"}  # for `Prefer: code=…`, if it is no fault itself
LISTED = (
    f"{', '.join(REFUSALS)}, slow=2s, slow=lognormal(90ms,0.5), dribble=10x200ms, cut, reset, truncate=half,"
    " lost-response, duplicate"
)
UNKNOWN = f"Is not a known fault. Known are: {LISTED}."


class Refusal(NamedTuple):
    """The request is refused, with this status or for this reason."""

    code: str


class Slow(NamedTuple):
    """The response is late by `median` seconds. With `sigma`, the delays have a log-normal distribution."""

    median: float
    sigma: float = 0.0

    def sample(self, random: Random) -> float:
        """Return the delay of one response in seconds."""
        return min(self.median * math.exp(random.gauss(0, self.sigma)), LONGEST_SECONDS)


class Dribble(NamedTuple):
    """The body is sent in pieces, each after a pause in seconds."""

    pieces: int
    pause: float


class Break(Enum):
    """The connection ends early, or the request arrives twice. Values are the notation."""

    CUT = "cut"
    RESET = "reset"
    TRUNCATE = "truncate=half"
    LOST_RESPONSE = "lost-response"
    DUPLICATE = "duplicate"


Fault = Refusal | Slow | Dribble | Break
NOTATIONS = [*REFUSALS, SLOW.pattern, VARYING.pattern, DRIBBLE.pattern, *(each.value for each in Break)]
PATTERN = f"^({'|'.join(NOTATIONS)})$"  # for the OpenAPI document


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault in one request. `source`: the rule or header that has caused it; `delay`: the seconds, if it is slow."""

    fault: Fault
    notation: str
    source: str
    delay: float = 0.0

    @property
    def skips_work(self) -> bool:
        """Whether the request is not executed."""
        return isinstance(self.fault, Refusal) or self.fault in {Break.CUT, Break.RESET}


def inject(notation: str, source: str, random: Random) -> Injection:
    """Return the fault for one request. `random`: the source of varying delays. Raises ValueError if it is unknown."""
    fault = parse(notation)
    return Injection(fault, notation, source, fault.sample(random) if isinstance(fault, Slow) else 0.0)


def parse(text: str) -> Fault:
    """Parse the notation of a fault. Raises ValueError with a message for users if it is unknown."""
    if text in REFUSALS:
        return Refusal(text)
    if found := SLOW.fullmatch(text):
        return Slow(_seconds(found[1], found[2]))
    if (found := VARYING.fullmatch(text)) and float(found[3]) <= LARGEST_SIGMA:
        return Slow(_seconds(found[1], found[2]), float(found[3]))
    if (found := DRIBBLE.fullmatch(text)) and int(found[1]) <= MOST_PIECES:
        return Dribble(int(found[1]), _seconds(found[2], found[3]))
    try:
        return Break(text)
    except ValueError:
        raise ValueError(UNKNOWN) from None


def _seconds(number: str, unit: str) -> float:
    seconds = float(number) / (1000 if unit == "ms" else 1)
    if seconds > LONGEST_SECONDS:
        raise ValueError(f"Must not be longer than {LONGEST_SECONDS:.0f} seconds.")
    return seconds
