"""Secrets of variables, and of files: those that variables name, and the credentials of a service (systemd)."""

from dataclasses import dataclass, field
from pathlib import Path

from musicsvc import environment, permissions
from musicsvc.environment import PREFIX
from musicsvc.errors import Failure

LONGEST = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret value. `source`: the variable, or the file, that holds it."""

    value: str = field(repr=False)
    source: str


def find(name: str) -> Secret | None:
    """Return the secret `name`, such as `database_url`, of the first of these that exists, or None.

    The variable MUSICSVC_DATABASE_URL, the file that MUSICSVC_DATABASE_URL_FILE names, `database_url` in the folder
    CREDENTIALS_DIRECTORY. Raises Failure if both variables are set, or if a file is missing, unreadable or empty.
    """
    given = environment.variables()
    variable, naming = f"{PREFIX}{name.upper()}", f"{PREFIX}{name.upper()}_FILE"
    if variable in given and naming in given:
        raise Failure(f"{variable} and {naming} are both set. Unset one of them.")
    if variable in given:
        return Secret(given[variable], variable)
    if naming in given:
        file = Path(given[naming])
        if not file.exists():
            raise Failure(f"{naming}: there is no file {file}. Create it, or correct the variable.")
        return Secret(read(file, f"{naming}: the file {file}"), f"{naming} ({file})")
    folder = environment.credentials_folder()
    if folder is None or not (file := Path(folder) / name).exists():
        return None
    return Secret(read(file, f"The credential {file}"), str(file))


def read(file: Path, place: str) -> str:
    """Return the only line of the file. `place`: its name at the beginning of an error message.

    Raises Failure if the file is missing, unreadable or empty, or has more than a line.
    """
    try:
        if not file.exists():
            raise Failure(f"{place} does not exist.")
        if not file.is_file():  # a pipe could be read only once, and not at SIGHUP again
            raise Failure(f"{place} is not a regular file.")
        with file.open("rb") as opened:
            text = opened.read(LONGEST).decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Failure(f"{place} is not valid UTF-8.") from None
    except OSError as error:
        denied = permissions.denial(file) if isinstance(error, PermissionError) else None
        raise Failure(f"{place} cannot be read: {error.strerror}. {denied or ''}".strip()) from None
    if not text.strip():
        raise Failure(f"{place} is empty. Write the value into it.")
    if not text.isprintable():
        raise Failure(f"{place} must contain the value as its only line, without control characters.")
    return text
