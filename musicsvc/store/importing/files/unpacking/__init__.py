"""What the limited program does with files that claim little and unpack to much, a module for each task."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any


def parts(task: str, file: str, folder: str, options: dict[str, Any]) -> Iterator[Any]:
    """Return what there is about a file, then its rows (`rows.py`), with `{"position": …}` now and then.

    `task`: the module that does it. `folder`: for temporary files.
    """
    found: Iterator[Any] = import_module(f"{__name__}.{task}").parts(Path(file), Path(folder), options)
    return found
