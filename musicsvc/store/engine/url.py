"""Database addresses."""

import re
from pathlib import Path

SQLITE = "sqlite:///"


def path_of(url: str) -> Path | None:
    """Return the file of a SQLite address, None for another address."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def describe(url: str) -> str:
    """Return "The database " with the path of a SQLite file, or with another address without its password."""
    return f"The database {without_password(url.removeprefix(SQLITE))}"


def without_password(url: str) -> str:
    """Return the address with its password masked, in the user part and in the query."""
    url = re.sub(r"(?<=://)([^/@]*):[^/]*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*", r"\1=***", url)
