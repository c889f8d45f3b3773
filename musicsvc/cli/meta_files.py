"""`FILE.meta.json`: the description of an export, written beside it and read to verify it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from musicsvc.cli.output import JSON
from musicsvc.cli.output_file import STDOUT, open_output
from musicsvc.errors import Failure
from musicsvc.reports import verification
from musicsvc.server.schemas import exports

SUFFIX = ".meta.json"


def write(out: Path, form: str, verification: Mapping[str, Any], rows: Sequence[JSON] = ()) -> None:
    """Write the description of the export file `out`. Do nothing if `out` is stdout or a device.

    `rows`: the figures of a report, which cannot be read back from every format.
    """
    if out == STDOUT or not out.is_file():
        return
    meta = {**verification, "file": {"name": out.name, "format": form, "sha256": _digest(out)}}
    if rows:
        meta["rows"] = rows
    with open_output(path_of(out)) as target:
        target.write(json.dumps(meta, ensure_ascii=False, indent=2).encode() + b"\n")


def read(file: Path) -> exports.FileVerification:
    """Return the description of an export, from `FILE.meta.json` or, if that is missing, from inside a JSON export.

    Raises Failure if the file has no valid description.
    """
    from pydantic import ValidationError

    if not file.is_file():
        raise Failure(f"{file}: No such file.")
    beside = path_of(file)
    source = beside if beside.is_file() else file
    if source == file and file.suffix.lower() != ".json":
        raise Failure(f"{beside} is missing. It was written together with the export; keep it beside the file.")
    found = verification.document(source)
    try:
        if source == file:
            inside = found["data"]["verification"]
            found = {**inside, "file": {"name": file.name, "format": "json", "sha256": _digest(file)}}
        return exports.FileVerification.model_validate(found)
    except (ValidationError, KeyError, TypeError):
        raise Failure(f"{source} does not describe an export.") from None


def is_unchanged(file: Path, meta: exports.FileVerification) -> bool:
    """Return True if the file has the same bytes as when it was exported."""
    return _digest(file) == meta.file.sha256


def path_of(file: Path) -> Path:
    return file.with_name(file.name + SUFFIX)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
