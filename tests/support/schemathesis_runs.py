"""Run schemathesis in several folders, one after another: to load it takes longer than a short run.

Each folder has its settings (schemathesis.toml) and its arguments, one a line; the run writes its output and its exit
status there.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import schemathesis.cli
from schemathesis.core.failures import AcceptedNegativeData, Failure


def main(*folders: str) -> None:
    """Run schemathesis in each folder."""
    for folder in folders:
        os.chdir(folder)
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


if __name__ == "__main__":
    main(*sys.argv[1:])
