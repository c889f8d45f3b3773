"""The checks of `musicsvc doctor` on the database and the files of an installation."""

from dataclasses import dataclass
from typing import Literal

from musicsvc.errors import Failure

Level = Literal["ok", "warning", "problem"]
CHECK_ACCESS = "Check the permissions of the file, and which user runs this command."


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: its level, a sentence that describes it and, if something is wrong, what to do."""

    check: str
    level: Level
    finding: str
    hint: str = ""


def ok(check: str, finding: str) -> Finding:
    return Finding(check, "ok", finding)


def warning(check: str, finding: str, hint: str) -> Finding:
    return Finding(check, "warning", finding, hint)


def problem(check: str, finding: str, hint: str) -> Finding:
    return Finding(check, "problem", finding, hint)


def failed(check: str, failure: Failure, default_hint: str = CHECK_ACCESS) -> Finding:
    """Convert a failure to a finding: its first sentence is the problem, the rest (or `default_hint`) the hint."""
    fault, _, hint = failure.here.partition(". ")
    return problem(check, fault.rstrip(".") + ".", hint or default_hint)
