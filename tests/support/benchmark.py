"""Run a benchmark in this process, and start its servers with everything imported."""

import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.support import preloaded


def start(options: Sequence[str], variables: Mapping[str, str]) -> tuple[preloaded.Process, IO[str]]:
    """Start a server as `benchmarks/network_server.py` does."""
    reading, writing = os.pipe()
    process = preloaded.start(["serve", "--port", "0", *options], stderr=writing, variables=variables)
    os.close(writing)
    return process, os.fdopen(reading, encoding="utf-8")


def run(file: str) -> None:
    """Run the file with the arguments of this process."""
    preloaded.use_copy()
    sys.path[0], sys.argv[0] = str(Path(file).parent), file
    vars(import_module("network_server"))["start"] = start
    try:
        runpy.run_path(file, run_name="__main__")
    finally:
        preloaded.close()
