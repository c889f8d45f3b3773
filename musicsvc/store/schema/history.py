"""The migrations that a database has had, the oldest program that each lets run, and what follows for this program.

A schema carries two numbers: its own, which is its newest migration, and the oldest program that may use it, which is
the newest that any of its migrations names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import musicsvc

MIGRATIONS = Path(__file__).parents[1] / "migrations"
BASELINE = "0001_baseline"  # the first migration, also of the activity log
BEGIN_ANEW = "move it away, run musicsvc init, and import your files again."
TABLE = """
CREATE TABLE IF NOT EXISTS {} (
    name TEXT NOT NULL PRIMARY KEY,
    oldest_program TEXT NOT NULL,
    applied TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)"""
History: TypeAlias = Mapping[str, str]  # the oldest program of each applied migration by its name, oldest first


def available(folder: Path | None = None) -> list[str]:
    """Return the names of the migrations in `folder`, oldest first. Default: all of this version of the service."""
    return sorted(path.stem for path in (folder or MIGRATIONS).glob("[0-9]*.py"))


def missing(have: History, folder: Path | None = None) -> list[str]:
    """Return the names of the migrations in `folder` that are not in `have`, oldest first."""
    return [name for name in available(folder) if name not in have]


def unknown(have: History, folder: Path | None = None) -> list[str]:
    """Return the names of the migrations in `have` that are not in `folder`: those of newer versions, oldest first."""
    return sorted(have.keys() - set(available(folder)))


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of the release that a version belongs to: (0, 2, 0) for 0.2.0 and for 0.2.0.dev0."""
    return tuple(int(part) for part in re.findall("[0-9]+", version)[:3])


def oldest_program(have: History) -> str:
    """Return the oldest program that may use a schema with these migrations."""
    return max(have.values(), key=release, default="0.1.0")


def too_old(name: str, have: History) -> str | None:
    """Return an error message, beginning with `name`, if a database with the migrations `have` precedes the first."""
    if not have or BASELINE in have:
        return None
    return f"{name} was written before version 0.1.0 and cannot be upgraded: {BEGIN_ANEW}"


def too_new(name: str, have: History, folder: Path | None) -> str | None:
    """Return an error message, beginning with `name`, if no program as old as this one may use the schema."""
    needed = oldest_program(have)
    if not unknown(have, folder) or release(needed) <= release(musicsvc.__version__):
        return None
    return (
        f"{name} needs musicsvc {needed} or newer, and this is {musicsvc.__version__}: install that version, or restore"
        " a backup of before the upgrade."
    )


def refusal(name: str, have: History, folder: Path | None = None) -> str | None:
    """Return an error message, beginning with `name`, if this version can neither use nor upgrade the database."""
    return too_old(name, have) or too_new(name, have, folder)
