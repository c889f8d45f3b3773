"""A Spark master and two workers on loopback."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.program import ended, until

HOST = "127.0.0.1"
MEMORY = "1g"
VARIABLES = f"SPARK_LOCAL_IP={HOST}", "SPARK_SCALA_VERSION=2.13"  # else workers look for the folders of a build


def home() -> Path:
    """Return the folder of pyspark. Skips the test if it, or Java, is not installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        pytest.skip("pyspark is not installed (pip install -e '.[spark]')")
    if shutil.which("java") is None:
        pytest.skip("java is not on the path, and Spark needs it")
    return Path(spec.origin).parent


@contextmanager
def started(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start a master and workers for the `with` block. Yield the master's URL."""
    with ExitStack() as running:
        master = folder / "master"
        running.enter_context(_daemon(folder, master, "master.Master", "--port", "0"))
        url = _find(master, rf"spark://{HOST}:\d+")
        for number in range(workers):
            log = folder / f"worker-{number}"
            limits = "--cores", "1", "--memory", MEMORY, "--work-dir", str(folder / f"work-{number}")
            running.enter_context(_daemon(folder, log, "worker.Worker", *limits, url))
            _find(log, "Successfully registered with master")
        yield url


@contextmanager
def _daemon(folder: Path, log: Path, name: str, *arguments: str) -> Iterator[None]:
    classpath = f"{home()}/jars/*"
    options = "--host", HOST, "--webui-port", "0"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                "env",
                *VARIABLES,
                f"SPARK_HOME={home()}",
                "java",
                "-cp",
                classpath,
                "-Xmx512m",
                f"org.apache.spark.deploy.{name}",
                *options,
                *arguments,
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    with ended(process):
        yield


def _find(log: Path, pattern: str) -> str:
    until(lambda: re.search(pattern, log.read_text("utf-8")), seconds=600)
    found = re.search(pattern, log.read_text("utf-8"))
    assert found is not None
    return found[0]
