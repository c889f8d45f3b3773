"""Run schemathesis in several folders, one after another: to load it takes longer than a short run.

Each folder has its settings (schemathesis.toml) and its arguments, one a line; the run writes its output and its exit
status there. `short` before the folders: a place gets one value of a wrong type only.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import schemathesis.cli
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.generation.meta import CoveragePhaseData, CoverageScenario

SENT: set[tuple[object, ...]] = set()


def main(length: str, *folders: str) -> None:
    """Run schemathesis in each folder."""
    if length == "short":
        schemathesis.hook("filter_case")(is_first_of_wrong_type)
    for folder in folders:
        os.chdir(folder)
        SENT.clear()
        with Path("output").open("w", encoding="utf-8") as output, redirect_stdout(output), redirect_stderr(output):
            try:
                schemathesis.cli.schemathesis.main(Path("arguments").read_text("utf-8").splitlines())
            except SystemExit as end:
                Path("status").write_text(str(end.code), "utf-8")


@schemathesis.hook
def filter_failure(_context: Any, failure: Failure, case: Any, _response: Any) -> bool:
    """Return whether to report the failure: a string that matches the schema only after trimming may be accepted."""
    return not (isinstance(failure, AcceptedNegativeData) and has_edges([case.body, case.query]))


def has_edges(value: Any) -> bool:
    """Return whether a string in the value begins or ends with white space."""
    if isinstance(value, str):
        return value != value.strip()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(has_edges(part) for part in parts)


def is_first_of_wrong_type(_context: Any, case: Any) -> bool:
    """Return whether to send the case: half of all have wrong types, of which every kind is sent by other tests.

    These are test_parameters.py for ids and pages, and test_fields.py for bodies.
    """
    data = case.meta.phase.data if case.meta is not None else None
    if not isinstance(data, CoveragePhaseData) or data.scenario is not CoverageScenario.INCORRECT_TYPE:
        return True
    place = (case.operation.label, data.parameter_location, data.parameter, data.location)
    if place in SENT:
        return False
    SENT.add(place)
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
