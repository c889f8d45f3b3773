"""Import optional dependencies, and tell users how to install missing ones."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from musicsvc.errors import Failure

PACKAGE = "musicsvc"
EXTRAS = {"postgres": "PostgreSQL", "parquet": "Parquet"}


@contextmanager
def required(extra: str) -> Iterator[None]:
    """Raise Failure with the command that installs this extra if an import in the `with` block fails."""
    try:
        yield
    except ImportError:
        raise Failure(f"{EXTRAS[extra]} needs the extra {extra}. Run: {command(extra)}") from None


def command(extra: str) -> str:
    """Return the pip command that installs an extra, from the source folder if the package came from one (PEP 610)."""
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    origin = _origin()
    if "dir_info" not in origin:
        return f"{pip} '{PACKAGE}[{extra}]'"
    folder = url2pathname(urlsplit(origin["url"]).path)
    editable = "-e " if origin["dir_info"].get("editable") else ""
    return f"cd {shlex.quote(folder)} && {pip} {editable}'.[{extra}]'"


def _origin() -> dict[str, Any]:
    """Return the package's direct_url.json (PEP 610), or {} if the package was installed from a package index."""
    try:
        text = metadata.distribution(PACKAGE).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {}
    return json.loads(text) if text else {}
