"""Error messages for invalid settings: the name of the setting, the place where it was set, and the broken rule."""

import json
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from musicsvc.environment import DEMO_VARIABLES, PREFIX, variables
from musicsvc.wording import explain_validation

NO_SUCH = "no such setting{}. musicsvc config show lists all settings"
SECRET_FILES = {f"MUSICSVC_DATABASE_{name}URL_FILE" for name in ("", "READ_", "DIRECT_")}
TEST_VARIABLES = {"MUSICSVC_PG_BIN", "MUSICSVC_SHARED_DATA"}


def message(error: ValidationError, names: Collection[str], section: str = "", source: str = "") -> str:
    """Return the error message for the first invalid setting.

    `names`: of all settings; `section`: the TOML table; `source`: where it was set.
    """
    first = error.errors()[0]
    name = ".".join([section] * bool(section) + [str(part) for part in first["loc"]])
    if first["type"] == "extra_forbidden":
        near = _nearest(name, {*names, *(each.partition(".")[0] for each in names)})
        problem = NO_SUCH.format(f" (did you mean {near}?)" if near else "")
    else:
        problem = explain_validation(dict(first))
    return f"Setting {name}{f' ({source})' if source else ''}: {problem}."


def source(error: ValidationError, file: Path) -> str:
    """Return the source of the first invalid setting in `error`: an environment variable, or else the settings file."""
    return variable_of([str(part) for part in error.errors()[0]["loc"]]) or str(file)


def variable_of(path: Sequence[str]) -> str | None:
    """Return the environment variable that sets the value at `path`, such as `server`, `port`, or None.

    The variable of a table sets only the keys that its JSON has.
    """
    given = variables()
    for length in range(len(path), 0, -1):
        name = _variable_name(".".join(path[:length]))
        if name in given and (length == len(path) or _has(given[name], path[length])):
            return name
    return None


def _has(text: str, key: str) -> bool:
    table = json.loads(text) if _is_json(text) else None
    return not isinstance(table, dict) or key in table


def json_message(settings: Mapping[str, Any]) -> str:
    """Return the error message for the first variable whose list or table is not valid JSON.

    `settings`: the default value of each setting by the setting's name.
    """
    tables = _tables(settings)
    lists = {_variable_name(name) for name, value in settings.items() if isinstance(value, list)}
    for variable, value in variables().items():
        if variable in tables and not _is_json(value):
            return f'{variable} is not valid JSON. Write a table as {{"name": "value"}}.'
        if variable in lists and not _is_json(value):
            return f'{variable} is not valid JSON. Write a list as ["a", "b"].'
    return f"A {PREFIX} variable is not valid JSON. Write lists and tables as JSON."


def unknown_variables(settings: Collection[str]) -> list[str]:
    """Return the names of variables that begin with MUSICSVC_ but match no setting, sorted, with the nearest one."""
    whole = {*map(_variable_name, settings), *SECRET_FILES, *TEST_VARIABLES, *DEMO_VARIABLES}
    tables = _tables(settings)
    return sorted(
        name + _nearest_variable(name, settings)
        for name in variables()
        if name.startswith(PREFIX) and name not in whole and name.partition("__")[0] not in tables
    )


def _tables(settings: Collection[str]) -> set[str]:
    return {f"{PREFIX}{name.partition('.')[0]}".upper() for name in settings if "." in name}


def _nearest_variable(variable: str, settings: Collection[str]) -> str:
    """Return ` (NAME?)` with the variable of the setting whose name is most like that of this one, or nothing."""
    near = _nearest(variable.removeprefix(PREFIX).replace("__", "."), settings)
    return f" ({_variable_name(near)}?)" if near else ""


def _nearest(name: str, names: Collection[str]) -> str:
    name = name.lower()
    same = [each for each in names if each.rpartition(".")[2] == name]
    return next(iter(same or get_close_matches(name, names, 1, 0.75)), "")


def _variable_name(name: str) -> str:
    return PREFIX + name.replace(".", "__").upper()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
