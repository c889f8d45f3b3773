"""Import optional dependencies, and tell users how to install missing ones."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from musicsvc.errors import Failure

PACKAGE = "musicsvc"
EXTRAS = {"postgres": "PostgreSQL", "parquet": "Parquet", "spark": "Spark", "clickhouse": "ClickHouse"}
# Tools that install programs, by the file that they leave in the virtual environment.
TOOLS = {"pipx_metadata.json": "pipx install --force", "uv-receipt.toml": "uv tool install"}


@contextmanager
def required(extra: str) -> Iterator[None]:
    """Raise Failure with the command that installs this extra if an import in the `with` block fails."""
    try:
        yield
    except ImportError:
        lack = ", which this program was built without" if _is_frozen() else ""
        raise Failure(f"{EXTRAS[extra]} needs the extra {extra}{lack}. Run: {command(extra)}") from None


def command(extra: str) -> str:
    """Return the command that installs an extra, with the tool and from the place that the package came from (PEP 610).

    Nothing can be added to a frozen program: its users install the package instead.
    """
    origin = _origin()
    url: str = origin.get("url", "")
    tool = next((tool for file, tool in TOOLS.items() if Path(sys.prefix, file).exists()), None)
    if tool is None and "dir_info" in origin:
        editable = "-e " if origin["dir_info"].get("editable") else ""
        return f"cd {shlex.quote(url2pathname(urlsplit(url).path))} && {_pip()} {editable}'.[{extra}]'"
    place = f" @ {url}" if url else ""
    return f"{'pipx install' if _is_frozen() else tool or _pip()} {shlex.quote(f'{PACKAGE}[{extra}]{place}')}"


def _pip() -> str:
    return f"{shlex.quote(sys.executable)} -m pip install"


def _is_frozen() -> bool:
    return getattr(sys, "frozen", False)


def _origin() -> dict[str, Any]:
    """Return the package's direct_url.json (PEP 610), or {} if the package was installed from a package index."""
    try:
        text = metadata.distribution(PACKAGE).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return json.loads(text) if text else {}
