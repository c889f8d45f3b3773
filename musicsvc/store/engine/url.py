"""Parse database URLs, and display them without passwords."""

import re
from pathlib import Path

SQLITE = "sqlite:///"


def path_of(url: str) -> Path | None:
    """Return the file path in a SQLite URL, or None for any other URL."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def describe(url: str) -> str:
    """Return `The database PATH` for a SQLite URL, and `The database URL`, without password, for any other URL."""
    return f"The database {without_password(url.removeprefix(SQLITE))}"


def without_password(url: str) -> str:
    """Return the URL with `***` in place of each password, in the user part and in the query string."""
    # Passwords with an unescaped / or ? are hidden too, although no driver accepts them.
    url = re.sub(r"(?<=://)([^/@:]*):(?:(?!\?[a-z_]+=).)*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*", r"\1=***", url)
