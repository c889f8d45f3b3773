"""What is told of settings that cannot be used: which one, where it stands, and what is wrong with it."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from musicsvc.wording import explain_validation

NO_SUCH = "There is no such setting; musicsvc config show lists all"
OF_TESTS = {"MUSICSVC_PG_BIN", "MUSICSVC_SHARED_DATA"}


def sentence(error: ValidationError, section: str = "", place: str = "") -> str:
    """The first fault; `section` is what was looked at, where that was not all; `place` is where the setting stands."""
    first = error.errors()[0]
    name = ".".join([section] * bool(section) + [str(part) for part in first["loc"]])
    problem = NO_SUCH if first["type"] == "extra_forbidden" else explain_validation(dict(first))
    return f"Setting {name}{f' ({place})' if place else ''}: {problem}."


def place(error: ValidationError, prefix: str, variables: Collection[str], file: Path) -> str:
    """Where the setting stands that the first fault is about: a variable, or else the file."""
    names = [str(part).upper() for part in error.errors()[0]["loc"]]
    spelled = [prefix + "__".join(names[:length]) for length in range(len(names), 0, -1)]
    return next((name for name in spelled if name in variables), str(file))


def unreadable(prefix: str, variables: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """The sentence on a variable that is no JSON and should be; `settings`: the defaults, by dotted name."""
    tables = {f"{prefix}{name.partition('.')[0]}".upper() for name in settings if "." in name}
    lists = {spelled(prefix, name) for name, value in settings.items() if isinstance(value, list)}
    for variable, value in variables.items():
        if variable in tables and not _is_json(value):
            return f'{variable} cannot be read. A table is written {{"name": "value"}}.'
        if variable in lists and not _is_json(value):
            return f'{variable} cannot be read. A list is written ["a", "b"].'
    return f"A {prefix} variable cannot be read. A list is written as JSON."


def unknown(prefix: str, variables: Collection[str], settings: Collection[str]) -> list[str]:
    """The variables that set nothing and are refused by nobody, in order."""
    whole = {spelled(prefix, name) for name in settings} | OF_TESTS
    tables = {f"{prefix}{name.partition('.')[0]}".upper() for name in settings if "." in name}
    return sorted(
        name
        for name in variables
        if name.startswith(prefix) and name not in whole and name.partition("__")[0] not in tables
    )


def spelled(prefix: str, name: str) -> str:
    """The variable of a setting."""
    return prefix + name.replace(".", "__").upper()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
