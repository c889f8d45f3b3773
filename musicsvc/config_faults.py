"""Error messages for invalid settings: the name of the setting, the place where it was set, and the broken rule."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from musicsvc.environment import DEMO_VARIABLES
from musicsvc.wording import explain_validation

NO_SUCH = "no such setting. musicsvc config show lists all settings"
SECRET_FILES = {f"MUSICSVC_DATABASE_{name}URL_FILE" for name in ("", "READ_", "DIRECT_")}
TEST_VARIABLES = {"MUSICSVC_PG_BIN", "MUSICSVC_SHARED_DATA"}


def message(error: ValidationError, section: str = "", source: str = "") -> str:
    """Return the error message for the first invalid setting. `section`: the TOML table; `source`: where it was set."""
    first = error.errors()[0]
    name = ".".join([section] * bool(section) + [str(part) for part in first["loc"]])
    problem = NO_SUCH if first["type"] == "extra_forbidden" else explain_validation(dict(first))
    return f"Setting {name}{f' ({source})' if source else ''}: {problem}."


def source(error: ValidationError, prefix: str, variables: Collection[str], file: Path) -> str:
    """Return the source of the first invalid setting in `error`: an environment variable, or else the settings file."""
    names = [str(part).upper() for part in error.errors()[0]["loc"]]
    spelled = [prefix + "__".join(names[:length]) for length in range(len(names), 0, -1)]
    return next((name for name in spelled if name in variables), str(file))


def json_message(prefix: str, variables: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """Return the error message for the first variable whose list or table is not valid JSON.

    `settings`: the default value of each setting by the setting's name.
    """
    tables = {f"{prefix}{name.partition('.')[0]}".upper() for name in settings if "." in name}
    lists = {variable_name(prefix, name) for name, value in settings.items() if isinstance(value, list)}
    for variable, value in variables.items():
        if variable in tables and not _is_json(value):
            return f'{variable} is not valid JSON. Write a table as {{"name": "value"}}.'
        if variable in lists and not _is_json(value):
            return f'{variable} is not valid JSON. Write a list as ["a", "b"].'
    return f"A {prefix} variable is not valid JSON. Write lists and tables as JSON."


def unknown_variables(prefix: str, variables: Collection[str], settings: Collection[str]) -> list[str]:
    """Return the names of variables that begin with `prefix` but match no setting, sorted."""
    whole = {variable_name(prefix, name) for name in settings} | {
        *SECRET_FILES,
        *TEST_VARIABLES,
        *DEMO_VARIABLES,
    }
    tables = {f"{prefix}{name.partition('.')[0]}".upper() for name in settings if "." in name}
    return sorted(
        name
        for name in variables
        if name.startswith(prefix) and name not in whole and name.partition("__")[0] not in tables
    )


def variable_name(prefix: str, name: str) -> str:
    return prefix + name.replace(".", "__").upper()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
